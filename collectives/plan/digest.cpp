#include "collectives/plan/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chorus::plan {

std::uint64_t digest(void const* data, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

}  // namespace chorus::plan
