#include "collectives/core/pace.hpp"

#include <doctest/doctest.h>

using namespace chorus;

namespace {

constexpr std::uint64_t mib = 1 << 20;

Pace after(std::initializer_list<double> seconds) {
  Pace pace;
  for (auto const took : seconds) pace.finished(Op::all_reduce, mib, took);
  return pace;
}

}  // namespace

TEST_CASE("the timeout of an operation seen less than three times is 30 s, or ten times its prediction if longer") {
  CHECK(Pace().patience_s(Op::all_reduce, mib) == 30);
  CHECK(after({0.1, 0.1}).patience_s(Op::all_reduce, mib) == 30);
  CHECK(Pace().patience_s(Op::all_reduce, mib, 7) == 70);
  CHECK(Pace().patience_s(Op::all_reduce, mib, 1e9) == 600);
}

TEST_CASE("the timeout of a known operation is ten times its slowest duration, and at least 10 s") {
  CHECK(after({0.1, 0.2, 0.1}).patience_s(Op::all_reduce, mib) == 10);
  CHECK(after({1.5, 2, 1.5}).patience_s(Op::all_reduce, mib) == doctest::Approx(10 * 2 * 0.999));
}

TEST_CASE("a single slow operation lengthens the timeout, until thousands of fast ones have followed") {
  auto pace = after({0.1, 0.1, 40});
  CHECK(pace.patience_s(Op::all_reduce, mib) == 400);
  for (int call = 0; call < 700; ++call) pace.finished(Op::all_reduce, mib, 0.1);
  CHECK(pace.patience_s(Op::all_reduce, mib) > 190);
  for (int call = 0; call < 7000; ++call) pace.finished(Op::all_reduce, mib, 0.1);
  CHECK(pace.patience_s(Op::all_reduce, mib) == 10);
}

TEST_CASE("the durations of one operation and size class do not change the timeouts of others") {
  auto const pace = after({20, 20, 20});
  CHECK(pace.patience_s(Op::all_reduce, mib) == 200);
  CHECK(pace.patience_s(Op::all_reduce, 16 * mib) == 30);
  CHECK(pace.patience_s(Op::barrier, 0) == 30);
}
