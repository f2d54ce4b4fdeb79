#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/verify_all.hpp"

using namespace chorus;
using namespace chorus::cli;

namespace {

VerifyWatcher const silent{.progress = [](auto&&...) {}, .failure = [](auto&&...) {}};

}  // namespace

TEST_CASE("every algorithm is verified with every parameter that means something to it") {
  constexpr std::uint32_t max_ranks = 6;
  constexpr std::uint64_t roots = 1 + 2 + 3 + 4 + 5 + 6, forms = 2, arities = 7;
  auto const plans_of = [&](plan::Algorithm const& algorithm) {
    return verify_all(std::array{&algorithm}, max_ranks, silent).plans;
  };
  CHECK(plans_of(algorithms::centralized) == roots * forms);
  CHECK(plans_of(algorithms::tree) == roots * arities * forms);
  CHECK(plans_of(algorithms::ring) == max_ranks * forms);
}

TEST_CASE("a wrong algorithm is found for every p at which it matters, and named") {
  auto silent_ring = algorithms::ring;
  silent_ring.emit = [](plan::Spec const&, plan::Rank, std::uint32_t, plan::Sink&) {};
  std::vector<plan::Spec> failures;
  VerifyWatcher const watcher{.progress = [](auto&&...) {},
                              .failure =
                                  [&](plan::Spec const& spec, std::string const& failure) {
                                    CHECK(!failure.empty());
                                    failures.push_back(spec);
                                  }};
  auto const totals = verify_all(std::array<plan::Algorithm const*, 1>{&silent_ring}, 3, watcher);
  CHECK(totals.plans == 6);
  CHECK(totals.failed == failures.size());
  REQUIRE(failures.size() >= 4);
  CHECK(failures.back() == plan::Spec{.algorithm = "ring", .ranks = 3, .in_place = true});
}
