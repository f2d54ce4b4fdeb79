// Checks in a rank's thread: failures are exceptions, which the test's thread sees.
#pragma once

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::embedded::testing {

inline void must(Status const& status) {
  if (status.has_error()) throw UnexpectedError(status.error());
}
inline void must(bool condition, char const* what) {
  if (!condition) throw std::runtime_error(what);
}
#define MUST(condition) chorus::embedded::testing::must(condition, #condition)

inline std::vector<std::int32_t> counting(std::int32_t from, std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

}  // namespace chorus::embedded::testing
