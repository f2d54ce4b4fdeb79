// GPUs that are left out, because the build has no code for them.
#include "worker/devices/cuda/architectures.hpp"

#include <doctest/doctest.h>

using namespace chorus::devices;

TEST_CASE("a build has code for GPUs of its architectures, for later ones of the same major version, and PTX") {
  auto const* const usual = "75,80,90";
  CHECK_FALSE(has_code_for(usual, 7, 0));  // V100
  CHECK(has_code_for(usual, 7, 5));
  CHECK(has_code_for(usual, 8, 6));
  CHECK(has_code_for(usual, 9, 0));
  CHECK(has_code_for(usual, 12, 0));
  CHECK_FALSE(has_code_for("86,90", 8, 0));
  CHECK_FALSE(has_code_for("75,90", 8, 9));  // the PTX is of 90
  CHECK(has_code_for("90a", 9, 0));
  CHECK_FALSE(has_code_for("90a", 10, 0));
}
