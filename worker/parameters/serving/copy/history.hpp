// A hash of all pushes that a copy of a shard has applied, in their order. Two copies at the same position have the
// same history only if they have applied the same pushes. So a backup that has applied a push of a former owner, which
// its present owner never had, is detected before it comes into step.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/parameters/shard/pushes/push.hpp"

namespace chorus::parameters {

// Returns the history after `push`: XXH3 of the fields that identify the push, seeded with the history before it.
[[nodiscard]] std::uint64_t history_after(std::uint64_t before, Push const& push);

// The history of one copy. Unknown if the copy was filled by a worker of an earlier release, which does not send it.
class History {
 public:
  [[nodiscard]] std::optional<std::uint64_t> now() const { return now_; }
  void take(Push const& push);
  void restart(std::optional<std::uint64_t> from) { now_ = from; }

  // True if a push with this owner's history before it may be the next push, or if `push` may have been the last one.
  // An unknown history allows every push.
  [[nodiscard]] bool may_be_followed_by(std::optional<std::uint64_t> before_it) const;
  [[nodiscard]] bool may_have_ended_with(Push const& push, std::optional<std::uint64_t> before_it) const;

 private:
  std::optional<std::uint64_t> now_ = 0;
};

}  // namespace chorus::parameters
