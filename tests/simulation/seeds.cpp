#include "tests/simulation/seeds.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iostream>

#include "tests/support/process.hpp"
#include "tests/support/scratch_directory.hpp"

namespace chorus::simulation {
namespace {

using testing::number_from_environment;

std::shared_ptr<spdlog::logger> silence() {
  return std::make_shared<spdlog::logger>("simulation", std::make_shared<spdlog::sinks::null_sink_mt>());
}

void add(Tally& total, Tally const& one) {
  for (auto const part : {&Tally::faults, &Tally::collectives, &Tally::succeeded, &Tally::member_calls,
                          &Tally::repetitions, &Tally::pushes, &Tally::pulls, &Tally::losses, &Tally::events,
                          &Tally::terms, &Tally::fenced, &Tally::refusals, &Tally::leaderless_calls})
    total.*part += one.*part;
}

std::string live(std::uint64_t seed, std::size_t coordinators, std::shared_ptr<spdlog::logger> log, Tally& total) {
  testing::ScratchDirectory const scratch;
  Life life(seed, coordinators, scratch / "", std::move(log));
  auto broken = life.live();
  add(total, life.tally());
  return broken;
}

void print(std::size_t seeds, Tally const& total) {
  std::cout << seeds << " lives, " << total.faults << " faults, " << total.collectives << " collectives, "
            << total.succeeded << " of which succeeded, " << total.member_calls << " calls of members, "
            << total.repetitions << " repeated, " << total.pushes << " pushes, " << total.pulls << " pulls, "
            << total.losses << " parameters lost with their only copy, " << total.events << " events";
  if (total.terms > 0)
    std::cout << ", " << total.terms << " leaders, " << total.fenced << " writes of former leaders refused, "
              << total.refusals << " requests refused and " << total.leaderless_calls
              << " calls of members made while nobody led";
  std::cout << std::endl;
}

}  // namespace

Tally live_from_seeds(std::size_t seeds, std::size_t (*coordinators)(std::uint64_t seed)) {
  spdlog::set_default_logger(silence());
  Tally total;
  if (auto const seed = number_from_environment("CHORUS_SEED", 0); seed != 0) {
    auto const log = std::make_shared<spdlog::logger>("simulation", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    spdlog::set_default_logger(log);
    auto const broken = live(seed, coordinators(seed), log, total);
    CHECK_MESSAGE(broken.empty(), broken);
    return total;
  }
  auto const seconds = number_from_environment("CHORUS_SIMULATION_SECONDS", 0);
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  auto const wanted = number_from_environment("CHORUS_SEEDS", seconds > 0 ? 0 : seeds);
  std::size_t lived = 0, failed = 0;
  for (std::uint64_t seed = 1; (wanted == 0 || seed <= wanted) && failed < 5; ++seed, ++lived) {
    if (seconds > 0 && std::chrono::steady_clock::now() >= until) break;
    auto const broken = live(seed, coordinators(seed), silence(), total);
    failed += broken.empty() ? 0 : 1;
    CHECK_MESSAGE(broken.empty(), "CHORUS_SEED=", seed, ": ", broken);
  }
  print(lived, total);
  return total;
}

Tally live_from_seed(std::uint64_t seed, std::size_t coordinators) {
  spdlog::set_default_logger(silence());
  Tally tally;
  auto const broken = live(seed, coordinators, silence(), tally);
  CHECK_MESSAGE(broken.empty(), "CHORUS_SEED=", seed, ": ", broken);
  return tally;
}

}  // namespace chorus::simulation
