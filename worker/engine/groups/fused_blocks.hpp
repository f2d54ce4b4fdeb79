// all_gather, reduce_scatter and all_to_all of many tensors in few calls of a group. Tensors of a bucket are packed
// block by block, so that the block of a rank in the bucket consists of that rank's blocks of all tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/plan/sizes/layout.hpp"
#include "worker/engine/groups/fused_buckets.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/groups/spare_memory.hpp"

namespace chorus::engine {

// A tensor of the list, as Group::run() takes it alone, without counts. In place input and output are the same memory.
struct FusedOperand {
  std::span<std::byte const> input;
  std::span<std::byte> output;
  std::uint64_t elements = 0;  // of the whole vector
  Dtype dtype = Dtype::f32;
};

// Keeps its packing memory, and the buckets of the last list, between calls. One call at a time.
class FusedBlocks {
 public:
  // The group and the arena, which may be null, outlive the object.
  FusedBlocks(Group& group, plan::Rank rank, plan::Rank ranks, memory::Arena* arena, FusionLimits limits = {});
  FusedBlocks(FusedBlocks const&) = delete;
  FusedBlocks& operator=(FusedBlocks const&) = delete;

  // The i-th output is as from Group::run() with the i-th input alone. Members pass operands of the same elements and
  // dtypes in the same order, and the same `in_place`; otherwise all fail with plan_mismatch. An error ends the call:
  // outputs of completed buckets have their results, the others are unchanged or, if they were not packed, undefined.
  [[nodiscard]] RunResult run(Op op, std::span<FusedOperand const> operands, bool in_place, ReduceOp reduce,
                              ChooseForBucket const& choose);

 private:
  // Which blocks of a tensor a buffer has.
  enum class Has {
    all,       // the whole vector
    own,       // this rank's block, by itself
    received,  // as many blocks as ranks, each as large as this rank's: the output of all_to_all
  };

  [[nodiscard]] RunResult run_packed(Op op, std::size_t bucket, std::span<FusedOperand const> operands, bool in_place,
                                     ReduceOp reduce, CallOptions options);
  void count_blocks();
  [[nodiscard]] std::uint64_t packed_bytes(std::size_t bucket, Has has) const;
  // Calls copy(packed, item, at, bytes) for every block of every tensor that is not empty: bytes before the block in
  // the packed buffer, the tensor's index in the list, bytes before the block in that tensor, and the block's size.
  template <class Copy>
  void for_each_block(std::size_t bucket, Has has, Copy copy);
  [[nodiscard]] plan::ElementRange own_block(std::uint64_t elements) const {
    return plan::Layout(elements, ranks_).range(rank_);
  }

  Group& group_;
  plan::Rank const rank_;
  plan::Rank const ranks_;
  FusedBuckets fused_;
  std::vector<std::vector<std::uint64_t>> counts_;  // by bucket: elements of each rank's block
  std::vector<std::uint64_t> next_;                 // by rank: byte of the packed buffer at which its next block begins
  SpareMemory packed_input_, packed_output_;
};

}  // namespace chorus::engine
