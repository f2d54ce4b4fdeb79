// Runs that a peer has begun and this rank has not: they wait, and each may fail alone.
#include <doctest/doctest.h>

#include <deque>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;

namespace {

// Two ranks, a large run that both have begun, and small runs that only one has begun.
class Ahead {
 public:
  explicit Ahead(FleetOptions const& options, std::size_t count)
      : fleet_(options), large_(fleet_, case_of(1, 30000), fleet_.now()) {
    large_.start();
    fleet_.let_move(20);
    for (std::size_t i = 0; i < count; ++i) small_.emplace_back(fleet_, case_of(i + 2, 100), fleet_.now());
  }

  void start(plan::Rank rank) {
    for (auto& run : small_) run.start(rank);
    fleet_.let_move();
  }
  // Number of failed runs; each of them failed on both ranks, because there was no room.
  std::size_t count_refused(std::string const& why) {
    CHECK_MESSAGE(large_.wrong().empty(), large_.wrong());
    std::size_t refused = 0;
    for (auto& run : small_) {
      REQUIRE(run.has_ended(0));
      REQUIRE(run.has_ended(1));
      if (run.result(0).status.has_value() && run.result(1).status.has_value()) {
        CHECK(run.wrong().empty());
        continue;
      }
      ++refused;
      for (plan::Rank rank : {0u, 1u}) {
        REQUIRE(run.result(rank).status.has_error());
        auto const& error = run.result(rank).status.error();
        CHECK(static_cast<EngineErrc>(error.code.value()) == EngineErrc::aborted);
        CHECK_MESSAGE(mentions(error.detail, why), error.detail);
      }
    }
    return refused;
  }

 private:
  static Case case_of(std::uint64_t run, std::uint64_t elements) {
    Case c;
    c.algorithm = &algorithms::ring;
    c.elements = elements;
    c.segment_bytes = 1024;
    c.run = run;
    return c;
  }

  LoopbackFleet fleet_;
  Collective large_;
  std::deque<Collective> small_;
};

FleetOptions with_little_room() {
  FleetOptions options;
  options.network = {1, 5000, 2000};
  options.eager_bytes = 1024;
  return options;
}

}  // namespace

TEST_CASE("a rank that is 300 runs ahead of another waits for it") {
  Ahead runs(FleetOptions(), 300);
  runs.start(0);
  runs.start(1);
  CHECK(runs.count_refused("") == 0);
}

TEST_CASE("a run for which there is no room to wait fails by itself, and no other on its link does") {
  auto options = with_little_room();
  options.early_runs = 4;
  Ahead runs(options, 300);
  runs.start(0);
  runs.start(1);
  CHECK(runs.count_refused("more than 4 runs of w0 wait for their calls here") == 296);
}

TEST_CASE("a run for whose data there is no room to wait fails by itself") {
  auto options = with_little_room();
  options.early_bytes = 0;  // as many as one run may send
  Ahead runs(options, 300);
  runs.start(0);
  runs.start(1);
  auto const refused = runs.count_refused("bytes of w0 wait for their runs' calls here");
  CHECK(refused > 0);
  CHECK(refused < 300);
}
