// Collectives over many tensors in few calls of a group. Tensors are packed into buckets and unpacked, except those in
// shared memory where members share memory: these are read and written in place.
#pragma once

#include <span>
#include <vector>

#include "worker/engine/groups/fused_buckets.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/groups/spare_memory.hpp"

namespace chorus::engine {

struct FusedTensor {
  std::span<std::byte> bytes;  // whole elements
  Dtype dtype = Dtype::f32;
};

// Keeps its packing memory, and the buckets of the last list, between calls. One call at a time.
class FusedCalls {
 public:
  using Choose = ChooseForBucket;

  // The group and the arena, which may be null, outlive the object.
  FusedCalls(Group& group, plan::Rank rank, memory::Arena* arena, FusionLimits limits = {});
  FusedCalls(FusedCalls const&) = delete;
  FusedCalls& operator=(FusedCalls const&) = delete;

  // all_reduce, reduce or broadcast of every tensor, in place. Members pass tensors of the same sizes and dtypes in the
  // same order; otherwise all fail with plan_mismatch. An error ends the call: tensors of completed buckets have their
  // results, the others are unchanged or, if they were not packed, undefined.
  [[nodiscard]] RunResult run(Op op, std::span<FusedTensor const> tensors, ReduceOp reduce, Choose const& choose);

 private:
  void place(std::span<FusedTensor const> tensors);
  [[nodiscard]] RunResult run(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions const& options);
  [[nodiscard]] RunResult run_packed(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  [[nodiscard]] RunResult run_in_place(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  [[nodiscard]] RunResult run_beside(FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  void collect_pieces(FusionBucket const& bucket);

  Group& group_;
  plan::Rank const rank_;
  memory::Arena* const arena_;
  FusedBuckets fused_;
  std::vector<std::span<std::byte>> memory_;
  std::vector<std::span<std::byte const>> contents_;
  std::vector<bool> is_shared_;               // by tensor: read and written in place
  std::uint64_t changes_ = 0;                 // changes() of the arena when is_shared_ was computed
  std::vector<std::span<std::byte>> pieces_;  // of the current bucket

  SpareMemory packed_;
};

}  // namespace chorus::engine
