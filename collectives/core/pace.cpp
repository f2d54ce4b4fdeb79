#include "collectives/core/pace.hpp"

#include <algorithm>
#include <bit>

namespace chorus {
namespace {

std::pair<Op, unsigned> key_of(Op op, std::uint64_t bytes) {
  return {op, static_cast<unsigned>(std::bit_width(bytes)) / 2};
}

}  // namespace

void Pace::finished(Op op, std::uint64_t bytes, double seconds) {
  auto& seen = seen_[key_of(op, bytes)];
  seen.times = std::min(seen.times + 1, known_after);
  seen.slowest_s = std::max(seen.slowest_s * fading, seconds);
}

double Pace::patience_s(Op op, std::uint64_t bytes, double predicted_s) const {
  auto const found = seen_.find(key_of(op, bytes));
  if (found == seen_.end() || found->second.times < known_after)
    return std::clamp(times_the_slowest * predicted_s, unknown_s, most_s);
  return std::clamp(times_the_slowest * found->second.slowest_s, least_s, most_s);
}

}  // namespace chorus
