#include "worker/engine/program/plan_cache.hpp"

#include <doctest/doctest.h>

#include <array>
#include <thread>
#include <vector>

#include "collectives/core/errc.hpp"
#include "collectives/plan/toy_for_tests.hpp"

using namespace chorus;
using namespace chorus::plan;
using engine::PlanCache;

namespace {

std::size_t bytes_of(Spec const& spec) { return build(toy, spec, 0).value().memory_bytes(); }

}  // namespace

TEST_CASE("a second request for the same spec and rank gets the same program") {
  PlanCache cache(1 << 20);
  auto const first = cache.get(toy, toy_spec(5), 1).value();
  CHECK(cache.get(toy, toy_spec(5), 1).value() == first);
  CHECK(cache.get(toy, toy_spec(5), 2).value() != first);
  CHECK(cache.get(toy, toy_spec(6), 1).value() != first);
  CHECK(*first == build(toy, toy_spec(5), 1).value());
}

TEST_CASE("a full cache evicts the least recently used program, and a caller's program outlives its eviction") {
  auto const a = toy_spec(10, 0), b = toy_spec(10, 1), c = toy_spec(10, 2);
  PlanCache cache(2 * bytes_of(a));
  auto const program_a = cache.get(toy, a, 0).value();
  auto const program_b = cache.get(toy, b, 0).value();
  CHECK(cache.get(toy, a, 0).value() == program_a);  // makes b the least recently used
  CHECK(cache.get(toy, c, 0).has_value());
  CHECK(cache.size_bytes() == 2 * bytes_of(a));
  CHECK(cache.get(toy, a, 0).value() == program_a);
  CHECK(cache.get(toy, b, 0).value() != program_b);
  CHECK(program_b->instructions.size() == 20);
}

TEST_CASE("one large program displaces several small ones, and a program larger than the cache displaces nothing") {
  auto const large = toy_spec(100), too_large = toy_spec(10'000);
  PlanCache cache(bytes_of(large));
  for (Rank root = 0; root < 3; ++root) CHECK(cache.get(toy, toy_spec(3, root), 0).has_value());
  CHECK(cache.get(toy, large, 0).has_value());
  CHECK(cache.size_bytes() == bytes_of(large));
  auto const program = cache.get(toy, large, 0).value();
  CHECK(cache.get(toy, too_large, 0).value()->instructions.size() == 20'000);
  CHECK(cache.get(toy, large, 0).value() == program);
}

TEST_CASE("a failed build is returned to the caller and not cached") {
  PlanCache cache(1 << 20);
  CHECK(cache.get(toy, toy_spec(3), 9).error().code == PlanErrc::rank_out_of_range);
  CHECK(cache.get(toy, {.algorithm = "ring", .ranks = 4}, 0).has_error());
  CHECK(cache.size_bytes() == 0);
}

TEST_CASE("threads that ask for more programs than fit get the right ones, and the cache stays within its limit") {
  auto const limit_bytes = 6 * bytes_of(toy_spec(16));
  PlanCache cache(limit_bytes);
  auto const ask = [&](std::uint32_t seed, bool& right) {
    for (std::uint32_t i = 0; i < 2000; ++i) {
      seed = seed * 1664525 + 1013904223;
      auto const spec = toy_spec(1 + (seed >> 16) % 32);
      auto const program = cache.get(toy, spec, seed >> 30).value();
      right = right && program->spec == spec && program->rank == seed >> 30 && cache.size_bytes() <= limit_bytes;
    }
  };
  std::array<bool, 4> right{true, true, true, true};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) threads.emplace_back(ask, t, std::ref(right[t]));
  }
  CHECK(right == std::array<bool, 4>{true, true, true, true});
}
