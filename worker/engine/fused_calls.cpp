#include "worker/engine/fused_calls.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/plan/digest.hpp"

namespace chorus::engine {

FusedCalls::FusedCalls(Group& group, plan::Rank rank, memory::Arena* arena, FusionLimits limits)
    : group_(group), rank_(rank), limits_(limits), packed_(arena), results_(arena) {}

void FusedCalls::Staging::give_back() {
  if (!shared_.empty()) arena_->free(shared_.data());
  shared_ = {};
}

std::span<std::byte> FusedCalls::Staging::take(std::uint64_t bytes) {
  if (shared_.size() >= bytes) return shared_.first(bytes);
  if (own_.size() >= bytes) return std::span(own_).first(bytes);
  give_back();
  if (arena_ != nullptr)
    if (auto const block = arena_->allocate(bytes); block.has_value()) {
      shared_ = *block;
      return shared_.first(bytes);
    }
  own_.resize(bytes);
  return own_;
}

void FusedCalls::arrange(std::span<FusedTensor const> tensors) {
  memory_.clear();
  contents_.clear();
  for (auto const& tensor : tensors) {
    memory_.push_back(tensor.bytes);
    contents_.emplace_back(tensor.bytes);
  }
  bool const known = std::equal(tensors.begin(), tensors.end(), items_.begin(), items_.end(),
                                [](FusedTensor const& tensor, FusionItem const& item) {
                                  return tensor.bytes.size() == item.bytes && tensor.dtype == item.dtype;
                                });
  if (known) return;
  items_.clear();
  for (auto const& tensor : tensors) items_.push_back({tensor.bytes.size(), tensor.dtype});
  buckets_ = fuse(items_, limits_);
  digests_.clear();
  // A bucket stands for its whole list, so that members with other lists do not agree on a part of them.
  std::vector<std::uint64_t> list;
  if (buckets_.size() > 1)
    for (auto const& item : items_) list.insert(list.end(), {item.bytes, static_cast<std::uint64_t>(item.dtype)});
  for (auto const& bucket : buckets_) {
    auto const own = fusion_digest(bucket);
    digests_.push_back(list.empty() ? own : plan::digest(list.data(), list.size() * sizeof list.front(), own) | 1);
  }
}

// Over links: one copy there and one back, or none.
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
  bool const has_it_already = op == Op::broadcast && is_root;
  if (packs && gets && !has_it_already && result.status.has_value()) unpack(bucket, whole, memory_);
  return result;
}

// Where others read what is packed: the results go elsewhere, for in place every member would have to wait for every
// other.
RunResult FusedCalls::run_beside(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options) {
  options.in_place = false;
  bool const is_root = options.root == rank_;
  bool const brings = op != Op::broadcast || is_root;
  bool const gets = op != Op::reduce || is_root;
  std::span<std::byte> input, output;
  if (brings) {
    input = packed_.take(bucket.bytes);
    pack(bucket, contents_, input);
  }
  // `mesh` sends nothing of what it has reduced, and so never has to say where it lies.
  if (op == Op::all_reduce && options.algorithm->name == "mesh") {
    pieces_.clear();
    for (auto const& piece : bucket.pieces) pieces_.push_back(memory_[piece.item]);
    return group_.all_reduce_into_pieces(input, pieces_, bucket.dtype, reduce, options);
  }
  bool const has_it_already = op == Op::broadcast && is_root;
  if (gets && !has_it_already) output = in_one_piece(bucket, memory_);
  bool const unpacks = gets && output.empty();
  if (unpacks) output = results_.take(bucket.bytes);
  auto result = group_.run(op, input, output, bucket.dtype, reduce, bucket.elements(), options);
  if (unpacks && !has_it_already && result.status.has_value()) unpack(bucket, output, memory_);
  return result;
}

RunResult FusedCalls::run(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions const& options) {
  bool const beside = !bucket.is_alone() && group_.path() == "shm";
  return beside ? run_beside(op, bucket, reduce, options) : run_packed(op, bucket, reduce, options);
}

RunResult FusedCalls::run(Op op, std::span<FusedTensor const> tensors, ReduceOp reduce, Choose const& choose) {
  CHORUS_ASSERT(op == Op::all_reduce || op == Op::reduce || op == Op::broadcast, "operations without blocks");
  arrange(tensors);
  RunResult total;
  if (buckets_.empty()) return total;
  auto const began = std::chrono::steady_clock::now();
  for (std::size_t b = 0; b < buckets_.size() && total.status.has_value(); ++b) {
    auto options = choose(buckets_[b].elements(), buckets_[b].dtype);
    if (options.has_error()) {
      total.status = options.error();
      return total;
    }
    options->agreement = digests_[b];
    options->timeout = time_left(began + options->timeout);  // of all buckets together
    if (auto met = group_.meet(options->timeout); met.status.has_error()) return met;
    auto result = run(op, buckets_[b], reduce, *options);
    total.duration += result.duration;
    total.wait_seconds += result.wait_seconds;
    total.bytes_sent += result.bytes_sent;
    total.bytes_received += result.bytes_received;
    total.steps += result.steps;
    total.status = std::move(result.status);
    total.culprits = std::move(result.culprits);
  }
  return total;
}

}  // namespace chorus::engine
