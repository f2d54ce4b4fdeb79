// Bytes that are changed between two ranks, on links with checksums.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t ranks = 4;

FleetOptions options_of(std::uint64_t seed) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {seed, 50000, 2000, links::Framing::checksummed};
  options.eager_bytes = 1024;
  return options;
}

// The algorithm's largest spec, in which all of its kinds of transfer occur.
Case case_of(plan::Algorithm const& algorithm, Op op, std::uint64_t run) {
  auto const specs = algorithms::representative_specs(algorithm, op, ranks);
  Case c{.algorithm = &algorithm, .op = op};
  c.root = specs.back().root;
  c.arity = specs.back().arity;
  c.shape = specs.back().shape;
  c.dtype = Dtype::i32;
  c.elements = op == Op::barrier ? ranks : 1200;
  c.segment_bytes = 1024;
  c.run = run;
  return c;
}

// Runs the collective; ranks that only wait for a failed one ask for it. Returns the time it took; empty if it never
// ends.
std::optional<std::chrono::milliseconds> run(LoopbackFleet& fleet, Collective& collective) {
  collective.start();
  for (std::chrono::milliseconds took{0}; took < 2000ms; took += 5ms) {
    fleet.let_move();
    if (collective.ended() == fleet.ranks()) return took;
    fleet.pass(5ms);
  }
  return std::nullopt;
}

struct Outcome {
  std::size_t noticed = 0;  // ranks that failed with corrupt_frame
  std::string broken;       // the promise that was broken
};

Outcome outcome_of(Collective const& collective) {
  Outcome outcome;
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    auto const& status = collective.result(rank).status;
    if (status.has_value()) {
      outcome.broken += collective.wrong(rank);
    } else if (status.error().code == EngineErrc::corrupt_frame) {
      ++outcome.noticed;
      if (collective.result(rank).culprits.size() != 2)
        outcome.broken += "names not both ends: " + status.error().detail;
    } else {
      outcome.broken += "fails otherwise: " + status.error().detail;
    }
  }
  return outcome;
}

}  // namespace

TEST_CASE("whichever bit is changed, of whatever operation: it is noticed, or harmless; and the next run is right") {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops) {
      if (algorithms::representative_specs(*algorithm, op, ranks).empty()) continue;
      std::size_t noticed = 0;
      for (std::uint64_t n = 1;; n += 1 + n / 4) {
        LoopbackFleet fleet(options_of(n));
        fleet.network().corrupt_at_read(n);
        Collective collective(fleet, case_of(*algorithm, op, 1), fleet.now());
        INFO(algorithm->name << " " << chorus::name(op) << ", read " << n);
        auto const took = run(fleet, collective);
        REQUIRE(took);
        CHECK(*took <= 100ms);
        auto const outcome = outcome_of(collective);
        REQUIRE_MESSAGE(outcome.broken.empty(), outcome.broken);
        fleet.let_move();
        if (!fleet.network().has_corrupted()) break;
        noticed += outcome.noticed;
        Collective again(fleet, case_of(*algorithm, op, 2), fleet.now());
        REQUIRE(again.run());
        REQUIRE(again.wrong().empty());
      }
      CHECK(noticed > 0);
    }
}

TEST_CASE("a changed byte that its receiver finds is in the error of both ends") {
  for (std::uint64_t n = 1;; ++n) {
    FleetOptions options = options_of(n);
    options.ranks = 2;
    LoopbackFleet fleet(options);
    fleet.network().corrupt_at_read(n);
    Case c = {.algorithm = &algorithms::ring};
    c.elements = 3000;
    Collective collective(fleet, c, fleet.now());
    REQUIRE(run(fleet, collective));
    if (!fleet.network().has_corrupted()) break;
    for (plan::Rank rank = 0; rank < 2; ++rank) {
      auto const& result = collective.result(rank);
      if (result.status.has_value()) continue;
      auto const& detail = result.status.error().detail;
      CHECK_MESSAGE(detail.find("bytes were changed between rank ") != std::string::npos, detail);
      CHECK_MESSAGE(detail.find(" of the link was changed on the way") != std::string::npos, detail);
      CHECK(result.culprits == std::vector<plan::Rank>{0, 1});
    }
  }
}
