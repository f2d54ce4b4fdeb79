#include "collectives/plan/layout.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::plan {

Layout::Layout(std::uint64_t elements, std::uint32_t chunks) : elements_(elements), chunks_(chunks) {
  CHORUS_ASSERT(chunks >= 1, "a vector is cut into at least one chunk");
  quotient_ = elements / chunks;
  remainder_ = elements % chunks;
}

ElementRange Layout::range(std::uint32_t first, std::uint32_t count) const {
  CHORUS_ASSERT(first < chunks_ && count <= chunks_ - first, "a chunk range lies within the layout");
  return {begin_of(first), begin_of(first + count)};
}

std::uint64_t Layout::begin_of(std::uint32_t chunk) const {
  return chunk * quotient_ + std::min<std::uint64_t>(chunk, remainder_);
}

}  // namespace chorus::plan
