// One call of a group for many tensors: they are called for in few calls. Over links they are packed and unpacked, and
// so are those in memory of one's own; where members share memory the others are read and written where they lie.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "worker/engine/fusion.hpp"
#include "worker/engine/group.hpp"

namespace chorus::engine {

struct FusedTensor {
  std::span<std::byte> bytes;  // whole elements
  Dtype dtype = Dtype::f32;
};

// Keeps the memory that it packs into, and the buckets of the last list, from call to call. One call at a time.
class FusedCalls {
 public:
  // How a bucket is called for, but for what belongs to fusion (in_place, agreement). The same on all members.
  using Choose = std::function<Result<CallOptions>(std::uint64_t elements, Dtype dtype)>;

  // Group and arena, which may be null, outlive it.
  FusedCalls(Group& group, plan::Rank rank, memory::Arena* arena, FusionLimits limits = {});
  FusedCalls(FusedCalls const&) = delete;
  FusedCalls& operator=(FusedCalls const&) = delete;

  // all_reduce, reduce or broadcast of every tensor, in place. Members bring tensors of the same sizes and dtypes in
  // the same order; others all fail with plan_mismatch. An error ends the call: tensors of buckets that were done
  // before have their results, the rest what they had or, where they were not packed, something in between.
  [[nodiscard]] RunResult run(Op op, std::span<FusedTensor const> tensors, ReduceOp reduce, Choose const& choose);

 private:
  void arrange(std::span<FusedTensor const> tensors);
  void place(std::span<FusedTensor const> tensors);
  [[nodiscard]] RunResult run(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions const& options);
  [[nodiscard]] RunResult run_packed(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  [[nodiscard]] RunResult run_in_place(Op op, FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  [[nodiscard]] RunResult run_beside(FusionBucket const& bucket, ReduceOp reduce, CallOptions options);
  void collect_pieces(FusionBucket const& bucket);

  Group& group_;
  plan::Rank const rank_;
  memory::Arena* const arena_;
  FusionLimits const limits_;
  std::vector<FusionItem> items_;  // of the list that the buckets are for
  std::vector<FusionBucket> buckets_;
  std::vector<std::uint64_t> digests_;  // by bucket
  std::vector<std::span<std::byte>> memory_;
  std::vector<std::span<std::byte const>> contents_;
  std::vector<bool> is_shared_;               // by tensor: it is read and written where it lies
  std::uint64_t changes_ = 0;                 // of the arena, when that was looked up
  std::vector<std::span<std::byte>> pieces_;  // of the bucket at hand

  // Memory in the arena; of the process where there is none, or no room in it.
  class Staging {
   public:
    explicit Staging(memory::Arena* arena) : arena_(arena) {}
    ~Staging() { give_back(); }
    Staging(Staging const&) = delete;
    Staging& operator=(Staging const&) = delete;
    [[nodiscard]] std::span<std::byte> take(std::uint64_t bytes);

   private:
    void give_back();
    memory::Arena* const arena_;
    std::span<std::byte> shared_;
    std::vector<std::byte> own_;
  };
  Staging packed_;
};

}  // namespace chorus::engine
