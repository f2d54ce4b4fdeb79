#include "worker/engine/groups/fused_calls.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::engine {
namespace {

// True if pieces overlap, as when a tensor is listed twice: one would be read after the other was written.
bool overlap(std::vector<std::span<std::byte>> memory) {
  std::erase_if(memory, [](auto piece) { return piece.empty(); });
  std::ranges::sort(memory, std::less<>(), [](auto piece) { return piece.data(); });
  auto const reaches_the_next = [](auto piece, auto next) { return piece.data() + piece.size() > next.data(); };
  return std::ranges::adjacent_find(memory, reaches_the_next) != memory.end();
}

}  // namespace

FusedCalls::FusedCalls(Group& group, plan::Rank rank, memory::Arena* arena, FusionLimits limits)
    : group_(group), rank_(rank), arena_(arena), fused_(limits), packed_(arena) {}

// Computed once for tensors that are passed again and again.
void FusedCalls::place(std::span<FusedTensor const> tensors) {
  auto const is_known = [](FusedTensor const& tensor, std::span<std::byte> memory) {
    return tensor.bytes.data() == memory.data() && tensor.bytes.size() == memory.size();
  };
  auto const changes = arena_ != nullptr ? arena_->changes() : 0;
  if (changes == changes_ && std::ranges::equal(tensors, memory_, is_known)) return;
  changes_ = changes;
  memory_.clear();
  contents_.clear();
  is_shared_.clear();
  for (auto const& tensor : tensors) {
    memory_.push_back(tensor.bytes);
    contents_.emplace_back(tensor.bytes);
    is_shared_.push_back(arena_ != nullptr && arena_->offset_of(tensor.bytes).has_value());
  }
  if (overlap(memory_)) is_shared_.assign(is_shared_.size(), false);
}

// Over links: packs and unpacks, unless the bucket is in one piece.
RunResult FusedCalls::run_packed(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options) {
  options.in_place = true;
  bool const is_root = options.root == rank_;
  bool const brings = op != Op::broadcast || is_root;
  bool const gets = op != Op::reduce || is_root;
  auto whole = in_one_piece(bucket, memory_);
  bool const packs = whole.empty();
  if (packs) {
    whole = packed_.take(bucket.bytes);
    if (brings) pack(bucket, contents_, whole);
  }
  std::span<std::byte const> const input = brings ? whole : std::span<std::byte>();
  auto const output = gets ? whole : std::span<std::byte>();
  auto result = group_.run(op, input, output, bucket.dtype, reduce, bucket.elements(), options);
  // Codes change the values of the root too: it gets what the others get.
  bool const has_it_already = op == Op::broadcast && is_root && !options.compression;
  if (packs && gets && !has_it_already && result.status.has_value()) unpack(bucket, whole, memory_);
  return result;
}

void FusedCalls::collect_pieces(FusionBucket const& bucket) {
  pieces_.clear();
  for (auto const& piece : bucket.pieces) pieces_.push_back(memory_[piece.item]);
}

// In memory that members share: no copy if all pieces are in the arena.
RunResult FusedCalls::run_in_place(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options) {
  auto const is_shared = [this](FusionPiece const& piece) { return is_shared_[piece.item]; };
  if (!std::ranges::all_of(bucket.pieces, is_shared)) return run_packed(op, bucket, reduce, options);
  collect_pieces(bucket);
  options.in_place = true;
  return group_.run_in_pieces(op, {}, pieces_, bucket.dtype, reduce, bucket.elements(), options);
}

// For `mesh`, in which each member reads the tensors of all others: in place, they would have to wait for each other
// before writing. Here the packed copy is read, and nothing is unpacked.
RunResult FusedCalls::run_beside(FusionBucket const& bucket, ReduceOp reduce, CallOptions options) {
  options.in_place = false;
  auto const input = packed_.take(bucket.bytes);
  pack(bucket, contents_, input);
  collect_pieces(bucket);
  return group_.run_in_pieces(Op::all_reduce, input, pieces_, bucket.dtype, reduce, bucket.elements(), options);
}

RunResult FusedCalls::run(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions const& options) {
  if (bucket.is_alone() || group_.path() != "shm") return run_packed(op, bucket, reduce, options);
  if (op == Op::all_reduce && options.algorithm->name == "mesh") return run_beside(bucket, reduce, options);
  return run_in_place(op, bucket, reduce, options);
}

RunResult FusedCalls::run(Op op, std::span<FusedTensor const> tensors, ReduceOp reduce, Choose const& choose) {
  CHORUS_ASSERT(op == Op::all_reduce || op == Op::reduce || op == Op::broadcast, "operations without blocks");
  place(tensors);
  fused_.arrange(tensors, [](FusedTensor const& tensor) { return FusionItem{tensor.bytes.size(), tensor.dtype}; });
  return fused_.run_each(group_, choose, [&](std::size_t bucket, CallOptions const& options) {
    return run(op, fused_.buckets()[bucket], reduce, options);
  });
}

}  // namespace chorus::engine
