#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/plans/verify_all.hpp"

using namespace chorus;
using namespace chorus::cli;

namespace {

VerifyWatcher const silent{.progress = [](auto&&...) {}, .failure = [](auto&&...) {}};

}  // namespace

TEST_CASE("every algorithm is verified with every parameter that it uses") {
  constexpr std::array<std::uint32_t, 6> ranks{1, 2, 3, 4, 5, 6};
  constexpr std::uint64_t forms = 2;
  auto const plans_of = [&](plan::Algorithm const& algorithm) {
    return verify_all(std::array{&algorithm}, ranks, silent).plans;
  };
  CHECK(plans_of(algorithms::ring_naive) == ranks.size() * forms);
  CHECK(plans_of(algorithms::dissemination) == ranks.size() * forms);
  CHECK(plans_of(algorithms::scatter_allgather) == (1 + 2 + 3 + 4 + 5 + 6) * forms);  // every root
}

TEST_CASE("a wrong algorithm is found for every affected p, and named") {
  auto silent_ring = algorithms::ring;
  silent_ring.emit = [](plan::Spec const&, plan::Rank, std::uint32_t, plan::Sink&) {};
  std::vector<plan::Spec> failures;
  VerifyWatcher const watcher{.progress = [](auto&&...) {},
                              .failure =
                                  [&](plan::Spec const& spec, std::string const& failure) {
                                    CHECK(!failure.empty());
                                    failures.push_back(spec);
                                  }};
  auto const totals =
      verify_all(std::array<plan::Algorithm const*, 1>{&silent_ring}, std::array<std::uint32_t, 1>{3}, watcher);
  CHECK(totals.plans > 4);
  CHECK(totals.failed == failures.size());
  CHECK(totals.failed == totals.plans);
  CHECK(failures.front() == plan::Spec{.algorithm = "ring", .ranks = 3});
}
