#include "collectives/core/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace chorus {

void assertion_failed(char const* condition, char const* why, char const* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s (%s)\n", file, line, condition, why);
  std::abort();
}

}  // namespace chorus
