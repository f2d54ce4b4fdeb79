// The buckets of a list of tensors, and their calls one after the other.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "worker/engine/groups/fusion.hpp"
#include "worker/engine/groups/group.hpp"

namespace chorus::engine {

// Returns the options for the call of a bucket, except in_place, counts and agreement. Must give the same on all
// members.
using ChooseForBucket = std::function<Result<CallOptions>(std::uint64_t elements, Dtype dtype)>;

// Keeps the buckets of the last list: a program passes the same one again and again. One thread at a time.
class FusedBuckets {
 public:
  explicit FusedBuckets(FusionLimits limits) : limits_(limits) {}

  // Returns whether the buckets are new, which those of a list of other sizes or dtypes are. `item` gives the
  // FusionItem of a tensor.
  template <class Tensor, class Item>
  bool arrange(std::span<Tensor const> tensors, Item item) {
    auto const is_known = [&item](Tensor const& tensor, FusionItem const& known) { return item(tensor) == known; };
    if (std::equal(tensors.begin(), tensors.end(), items_.begin(), items_.end(), is_known)) return false;
    items_.clear();
    for (auto const& tensor : tensors) items_.push_back(item(tensor));
    fill();
    return true;
  }

  [[nodiscard]] std::span<FusionBucket const> buckets() const { return buckets_; }

  // Calls `run` for one bucket after the other, within one timeout, until one fails. Members with different lists all
  // fail with plan_mismatch in the first.
  using Run = std::function<RunResult(std::size_t bucket, CallOptions options)>;
  [[nodiscard]] RunResult run_each(Group& group, ChooseForBucket const& choose, Run const& run) const;

 private:
  void fill();

  FusionLimits const limits_;
  std::vector<FusionItem> items_;
  std::vector<FusionBucket> buckets_;
  std::vector<std::uint64_t> digests_;  // by bucket
};

}  // namespace chorus::engine
