// Runs that share a link, at every moment at which one of them can start.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/run/run.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

Case large_run() {
  Case c;
  c.algorithm = &algorithms::ring;
  c.elements = 5000;  // not eager: its frames go through the link's scratch memory
  c.segment_bytes = 8192;
  c.run = 1;
  return c;
}

Case small_run() {
  Case c;
  c.algorithm = &algorithms::ring;
  c.elements = 100;  // eager: waits at a rank that has not called yet
  c.run = 2;
  return c;
}

FleetOptions slow_network() {
  FleetOptions options;
  options.ranks = 2;
  options.network = {1, 500, 200};  // frames arrive in pieces
  options.eager_bytes = 1024;
  return options;
}

}  // namespace

TEST_CASE("a run that starts while a frame of another lies half in the scratch memory leaves that one alone") {
  for (std::size_t moment = 0; moment < 400; ++moment) {
    CAPTURE(moment);
    LoopbackFleet fleet(slow_network());
    Collective large(fleet, large_run(), fleet.now()), small(fleet, small_run(), fleet.now());
    small.start(1);
    fleet.let_move();  // the small run's eager frames wait at rank 0
    large.start(0);
    large.start(1);
    fleet.let_move(moment);
    small.start(0);
    REQUIRE(small.finish());
    REQUIRE(large.finish());
    CHECK(large.wrong() == "");
    CHECK(small.wrong() == "");
  }
}

TEST_CASE("an abort that comes before this rank's call is passed on to the others that wait here") {
  FleetOptions options;
  options.ranks = 3;
  LoopbackFleet fleet(options);
  auto c = small_run();
  c.algorithm = &algorithms::centralized;
  Collective collective(fleet, c, fleet.now());
  collective.start(1);
  collective.start(2);
  fleet.let_move();
  fleet.engine(1).abort(c.run, Error(EngineErrc::aborted, "rank 1 gave up"));
  fleet.let_move();
  REQUIRE(collective.has_ended(2));
  CHECK(collective.result(2).status.error().detail.find("rank 1 gave up") != std::string::npos);
}

TEST_CASE("a rank that only waits in its turn is not blamed for the one that never called") {
  FleetOptions options;
  options.ranks = 3;
  LoopbackFleet fleet(options);
  auto c = small_run();
  c.timeout = std::chrono::milliseconds(500);
  Collective collective(fleet, c, fleet.now());
  collective.start(1);
  collective.start(2);
  fleet.let_move();
  fleet.pass(std::chrono::milliseconds(500));
  fleet.let_move();
  fleet.pass(PeerWatch::grace);
  for (plan::Rank const rank : {1u, 2u}) {
    REQUIRE(collective.has_ended(rank));
    INFO(collective.result(rank).status.error().detail);
    CHECK(collective.result(rank).culprits == std::vector<plan::Rank>{0});
  }
}
