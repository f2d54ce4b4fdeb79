#include "worker/engine/groups/fused_buckets.hpp"

#include "collectives/plan/digest.hpp"

namespace chorus::engine {

void FusedBuckets::fill() {
  buckets_ = fuse(items_, limits_);
  digests_.clear();
  // The agreement covers the whole list, so that members with different lists do not agree on some of the buckets.
  std::vector<std::uint64_t> list;
  if (buckets_.size() > 1)
    for (auto const& item : items_) list.insert(list.end(), {item.bytes, static_cast<std::uint64_t>(item.dtype)});
  for (auto const& bucket : buckets_) {
    auto const own = fusion_digest(bucket);
    digests_.push_back(list.empty() ? own : plan::digest(list.data(), list.size() * sizeof list.front(), own) | 1);
  }
}

RunResult FusedBuckets::run_each(Group& group, ChooseForBucket const& choose, Run const& run) const {
  RunResult total;
  auto const began = std::chrono::steady_clock::now();
  for (std::size_t b = 0; b < buckets_.size() && total.status.has_value(); ++b) {
    auto options = choose(buckets_[b].elements(), buckets_[b].dtype);
    if (options.has_error()) {
      total.status = options.error();
      return total;
    }
    options->agreement = digests_[b];
    options->timeout = time_left(began + options->timeout);  // one deadline for all buckets
    if (auto met = group.meet(options->timeout); met.status.has_error()) return met;
    auto result = run(b, std::move(*options));
    total.statistics += result.statistics;
    total.status = std::move(result.status);
    total.culprits = std::move(result.culprits);
  }
  return total;
}

}  // namespace chorus::engine
