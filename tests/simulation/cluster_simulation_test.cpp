// Whole clusters live and are tried, each from one number: see life.hpp. A seed that fails is printed, and fails again:
//
//   CHORUS_SEEDS=100000 build/release/tests/test_cluster_simulation    that many; for ever with 0
//   CHORUS_SIMULATION_SECONDS=120 build/release/tests/test_cluster_simulation    as many as there is time for
//   CHORUS_SEED=4711 build/release/tests/test_cluster_simulation       this one alone, with the logs of everybody
#include <doctest/doctest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <iostream>

#include "tests/simulation/life.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::simulation;
using namespace chorus::testing;

namespace {

std::shared_ptr<spdlog::logger> silence() {
  return std::make_shared<spdlog::logger>("simulation", std::make_shared<spdlog::sinks::null_sink_mt>());
}

std::string live(std::uint64_t seed, std::shared_ptr<spdlog::logger> log, Tally& total) {
  ScratchDirectory const scratch;
  Life life(seed, scratch / "", std::move(log));
  auto broken = life.live();
  total.faults += life.tally().faults;
  total.collectives += life.tally().collectives;
  total.succeeded += life.tally().succeeded;
  return broken;
}

}  // namespace

TEST_CASE("whatever happens to a cluster, everything ends, sums are right everywhere or nowhere, and it recovers") {
  spdlog::set_default_logger(silence());
  Tally total;
  if (auto const seed = number_from_environment("CHORUS_SEED", 0); seed != 0) {
    auto const log = std::make_shared<spdlog::logger>("simulation", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    spdlog::set_default_logger(log);
    auto const broken = live(seed, log, total);
    CHECK_MESSAGE(broken.empty(), broken);
    return;
  }
  auto const seconds = number_from_environment("CHORUS_SIMULATION_SECONDS", 0);
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  auto const wanted = number_from_environment("CHORUS_SEEDS", seconds > 0 ? 0 : 200);
  std::size_t seeds = 0, failed = 0;
  for (std::uint64_t seed = 1; (wanted == 0 || seed <= wanted) && failed < 5; ++seed, ++seeds) {
    if (seconds > 0 && std::chrono::steady_clock::now() >= until) break;
    auto const broken = live(seed, silence(), total);
    failed += broken.empty() ? 0 : 1;
    CHECK_MESSAGE(broken.empty(), "CHORUS_SEED=", seed, ": ", broken);
  }
  std::cout << seeds << " lives, " << total.faults << " faults, " << total.collectives << " collectives, "
            << total.succeeded << " of which succeeded" << std::endl;
}
