#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "worker/parameters/shard/pushes/step.hpp"
#include "worker/parameters/shard/testing/pushed_shard.hpp"

namespace chorus::parameters {

using testing::gradient;
using testing::rows;

TEST_CASE(
    "where owners set NaN and infinity to 0, the norm is that of the other elements, and the push stays as it is") {
  auto const nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  auto const whole = gradient("a", 0, {3, nan, -infinity, 4});
  CHECK(norm_of(whole, 0, true) == 5);
  CHECK_FALSE(std::isfinite(norm_of(whole, 0, false)));
  // Row 1 is (1 + 2, 0), row 2 is (0, 4).
  auto const of_rows = rows("a", 0, {1, 1, 2}, {1, nan, 2, infinity, 0, 4});
  CHECK(norm_of(of_rows, 2, true) == 5);
  CHECK_FALSE(std::isfinite(norm_of(of_rows, 2, false)));
  CHECK(norm_of(gradient("a", 0, {3, 4}), 0, true) == 5);
}

}  // namespace chorus::parameters
