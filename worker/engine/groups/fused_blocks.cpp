#include "worker/engine/groups/fused_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"

namespace chorus::engine {

FusedBlocks::FusedBlocks(Group& group, plan::Rank rank, plan::Rank ranks, memory::Arena* arena, FusionLimits limits)
    : group_(group), rank_(rank), ranks_(ranks), fused_(limits), packed_input_(arena), packed_output_(arena) {}

void FusedBlocks::count_blocks() {
  counts_.clear();
  for (auto const& bucket : fused_.buckets()) {
    auto& counts = counts_.emplace_back(ranks_);
    for (auto const& piece : bucket.pieces) {
      plan::Layout const layout(piece.bytes / element_bytes(bucket.dtype), ranks_);
      for (plan::Rank rank = 0; rank < ranks_; ++rank) counts[rank] += layout.range(rank).size();
    }
  }
}

std::uint64_t FusedBlocks::packed_bytes(std::size_t bucket, Has has) const {
  auto const& of_bucket = fused_.buckets()[bucket];
  if (has == Has::all) return of_bucket.bytes;
  auto const own = counts_[bucket][rank_] * element_bytes(of_bucket.dtype);
  return has == Has::own ? own : own * ranks_;
}

template <class Copy>
void FusedBlocks::for_each_block(std::size_t bucket, Has has, Copy copy) {
  auto const& of_bucket = fused_.buckets()[bucket];
  auto const& counts = counts_[bucket];
  auto const size = element_bytes(of_bucket.dtype);
  next_.assign(ranks_, 0);
  for (plan::Rank rank = 1; rank < ranks_ && has != Has::own; ++rank)
    next_[rank] = next_[rank - 1] + size * counts[has == Has::all ? rank - 1 : rank_];
  for (auto const& piece : of_bucket.pieces) {
    plan::Layout const layout(piece.bytes / size, ranks_);
    auto const own = size * layout.range(rank_).size();
    for (plan::Rank rank = 0; rank < (has == Has::own ? 1 : ranks_); ++rank) {
      auto const block = layout.range(rank);
      auto const bytes = has == Has::all ? size * block.size() : own;
      auto const at = has == Has::all ? size * block.begin : rank * own;
      if (bytes != 0) copy(next_[rank], piece.item, at, bytes);
      next_[rank] += bytes;
    }
  }
}

RunResult FusedBlocks::run_packed(Op op, std::size_t bucket, std::span<FusedOperand const> operands, bool in_place,
                                  ReduceOp reduce, CallOptions options) {
  auto const& of_bucket = fused_.buckets()[bucket];
  auto const& counts = counts_[bucket];
  options.in_place = false;  // the packed buffers are two
  if (std::ranges::any_of(counts, [&](std::uint64_t count) { return count != counts.front(); })) {
    options.counts = counts;
    if (op == Op::all_to_all) options.receive_counts.assign(ranks_, counts[rank_]);
  }
  auto const sends = op == Op::all_gather ? Has::own : Has::all;
  auto const gets = op == Op::all_gather ? Has::all : op == Op::reduce_scatter ? Has::own : Has::received;
  // In place the block that a rank has by itself lies in the whole.
  auto const begin_of = [&](Has has, std::size_t item) -> std::uint64_t {
    if (!in_place || has != Has::own) return 0;
    return own_block(operands[item].elements).begin * element_bytes(of_bucket.dtype);
  };
  auto const input = packed_input_.take(packed_bytes(bucket, sends));
  auto const output = packed_output_.take(packed_bytes(bucket, gets));
  for_each_block(bucket, sends, [&](std::uint64_t packed, std::size_t item, std::uint64_t at, std::uint64_t bytes) {
    std::memcpy(input.data() + packed, operands[item].input.data() + begin_of(sends, item) + at, bytes);
  });
  auto result = group_.run(op, input, output, of_bucket.dtype, reduce, of_bucket.elements(), options);
  if (result.status.has_error()) return result;
  for_each_block(bucket, gets, [&](std::uint64_t packed, std::size_t item, std::uint64_t at, std::uint64_t bytes) {
    std::memcpy(operands[item].output.data() + begin_of(gets, item) + at, output.data() + packed, bytes);
  });
  return result;
}

RunResult FusedBlocks::run(Op op, std::span<FusedOperand const> operands, bool in_place, ReduceOp reduce,
                           ChooseForBucket const& choose) {
  CHORUS_ASSERT(op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all, "operations with blocks");
  auto const item = [](FusedOperand const& operand) {
    return FusionItem{operand.elements * element_bytes(operand.dtype), operand.dtype};
  };
  if (fused_.arrange(operands, item)) count_blocks();
  return fused_.run_each(group_, choose, [&](std::size_t bucket, CallOptions options) {
    auto const& of_bucket = fused_.buckets()[bucket];
    if (!of_bucket.is_alone()) return run_packed(op, bucket, operands, in_place, reduce, std::move(options));
    auto const& alone = operands[of_bucket.pieces.front().item];
    options.in_place = in_place;
    return group_.run(op, alone.input, alone.output, alone.dtype, reduce, alone.elements, options);
  });
}

}  // namespace chorus::engine
