#include "collectives/model/cost.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/estimate.hpp"

using namespace chorus;
using namespace chorus::model;
using plan::Program, plan::Rank, plan::Spec;

namespace {

std::vector<Program> programs_of(plan::Algorithm const& algorithm, Spec spec) {
  spec.algorithm = algorithm.name;
  std::vector<Program> programs;
  for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
  return programs;
}

// Round numbers: a microsecond a message, a nanosecond a byte at home and ten times that abroad.
Constants round_numbers() {
  Constants constants;
  for (auto& link : constants.level) link = {10e-6, 10e-9};
  constants.level[0] = {1e-6, 1e-9};
  constants.gamma_s_per_byte = 0.5e-9;
  constants.segment_bytes = std::uint64_t{1} << 40;  // one segment
  return constants;
}

double microseconds(plan::Algorithm const& algorithm, Spec const& spec, std::uint64_t bytes,
                    std::vector<Locality> localities = {}, Constants const& constants = round_numbers()) {
  localities.resize(spec.ranks);
  return cost(programs_of(algorithm, spec), localities, bytes, 1, constants).seconds * 1e6;
}

auto approximately(double value) { return doctest::Approx(value).epsilon(1e-9); }

}  // namespace

TEST_CASE("a ring costs 2(p-1) latencies and 2(p-1)/p of the bytes, half of them reduced") {
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000) == approximately(3 * (1 + 1 + 0.5) + 3 * (1 + 1)));
}

TEST_CASE("at the root of centralized messages stand in line, in both directions") {
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 1000) == approximately(3 * 2.5 + 3 * 2));
}

TEST_CASE("in a tree a message climbs and descends level by level") {
  CHECK(microseconds(algorithms::tree, {.ranks = 7, .arity = 2}, 0) == approximately(8));
  CHECK(microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 1000) == approximately(3 * 2.5 + 3 * 2));
}

TEST_CASE("segments flow through a chain without waiting for each other") {
  auto constants = round_numbers();
  Spec const chain{.ranks = 9, .arity = 1};
  auto const whole = microseconds(algorithms::tree, chain, 160'000);
  constants.segment_bytes = 10'000;
  auto const in_segments = microseconds(algorithms::tree, chain, 160'000, {}, constants);
  CHECK(whole > 16 * 160);
  CHECK(in_segments < whole / 3);
  CHECK(in_segments > 2 * 160);
}

TEST_CASE("a slow link holds up the whole ring, and placing ranks by locality helps") {
  std::vector<Locality> near{{"", "", "", "a"}, {"", "", "", "a"}, {"", "", "", "b"}, {"", "", "", "b"}};
  std::vector<Locality> const scattered{near[0], near[2], near[1], near[3]};
  auto const at_home = microseconds(algorithms::ring, {.ranks = 4}, 4000);
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000, near) > 5 * at_home);
  CHECK(microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 4000, near) <
        microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 4000, scattered));
}

TEST_CASE("bytes are those of the busiest rank, to the element, and rounds those in which somebody sends") {
  auto const counted = [](plan::Algorithm const& algorithm, Spec const& spec, std::uint64_t elements) {
    return cost(programs_of(algorithm, spec), std::vector<Locality>(spec.ranks), elements, 4, round_numbers());
  };
  CHECK(counted(algorithms::ring, {.ranks = 4}, 8).bytes_per_rank == 2 * 6 * 4);
  CHECK(counted(algorithms::ring, {.ranks = 4}, 9).bytes_per_rank == (9 - 2 + 9 - 2) * 4);
  CHECK(counted(algorithms::centralized, {.ranks = 4}, 9).bytes_per_rank == 3 * 9 * 4);
  CHECK(counted(algorithms::tree, {.ranks = 7}, 9).bytes_per_rank == 3 * 9 * 4);
  CHECK(counted(algorithms::ring, {.ranks = 4}, 8).rounds == 6);
  CHECK(counted(algorithms::tree, {.ranks = 4}, 8).rounds == 6);  // node 3 is an only child
  CHECK(counted(algorithms::tree, {.ranks = 7}, 8).rounds == 8);
  CHECK(counted(algorithms::ring, {.ranks = 1}, 8).rounds == 0);
}

TEST_CASE("no algorithm stays under the lower bound, and the ring meets that of bytes") {
  for (std::uint32_t p = 1; p <= 24; ++p)
    for (std::uint64_t elements : {0u, 1u, p, p + 1, 1000u, 1001u}) {
      auto const least = lower_bound(Op::all_reduce, p, elements);
      for (auto const* algorithm : algorithms::all()) {
        auto const cost_of =
            cost(programs_of(*algorithm, {.ranks = p}), std::vector<Locality>(p), elements, 1, round_numbers());
        REQUIRE(cost_of.rounds >= least.rounds);
        REQUIRE(cost_of.bytes_per_rank >= least.bytes_per_rank);
        if (algorithm == &algorithms::ring && elements % p == 0)
          REQUIRE(cost_of.bytes_per_rank == least.bytes_per_rank);
      }
    }
  CHECK(lower_bound(Op::all_reduce, 4, 1000).bytes_per_rank == 1500);
  CHECK(lower_bound(Op::all_reduce, 3, 1).bytes_per_rank == 2);  // 4/3, rounded up
  CHECK(lower_bound(Op::all_reduce, 5, 1).rounds == 3);
  CHECK(lower_bound(Op::all_reduce, 8, 1).rounds == 3);
  CHECK(lower_bound(Op::all_reduce, 65'536, std::uint64_t{1} << 62).bytes_per_rank > std::uint64_t{1} << 62);
  CHECK(lower_bound(Op::all_gather, 4, 1000).bytes_per_rank == 750);
  CHECK(lower_bound(Op::scatter, 4, 5).bytes_per_rank == 3);  // the root may own the larger share
  CHECK(lower_bound(Op::broadcast, 4, 5).bytes_per_rank == 5);
  CHECK(lower_bound(Op::barrier, 4, 0).rounds == 2);
}

TEST_CASE("every algorithm has a closed formula, which agrees with following the instructions within a factor of 1.5") {
  auto const constants = Constants::defaults();
  for (auto const* algorithm : algorithms::all())
    for (std::uint32_t p : {40u, 64u})
      for (std::uint32_t arity : {2u, 4u, 8u})
        for (std::uint64_t bytes : {0u, 4u, 4096u, 1u << 20, 64u << 20}) {
          Spec const spec{.algorithm = std::string(algorithm->name), .ranks = p, .arity = arity};
          auto const followed = cost(programs_of(*algorithm, spec), std::vector<Locality>(p), bytes, 1, constants);
          auto const closed = estimate(spec, constants.link(Level::host), bytes, 1, constants);
          REQUIRE(closed.has_value());
          auto const ratio = closed->seconds / followed.seconds;
          CAPTURE(to_string(spec));
          CAPTURE(bytes);
          CHECK(ratio > 1 / 1.5);
          CHECK(ratio < 1.5);
          if (algorithm == &algorithms::ring) CHECK(ratio == doctest::Approx(1).epsilon(0.001));
          CHECK(closed->bytes_per_rank == followed.bytes_per_rank);
        }
}
