// A sequence of operations, each with a fault at some moment. Checks the health of every service before and after,
// every result against an oracle, and that every tensor has its old version or the new one, bit for bit, as the record
// says.
//
//   CHORUS_FAULTS=500 CHORUS_SEED=1 build/release/tests/test_e2e_faults    docs/explanation/testing.md
//   CHORUS_SOAK_SECONDS=3600 build/release/tests/test_e2e_faults           as many as there is time for
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

#include "tests/e2e/fault.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

struct Round {
  Work work;
  Fault fault;
  std::chrono::microseconds moment{0};
  bool goes_on = false;  // if a rank is lost, the remaining ranks go on
};

// Operations for any number of ranks.
std::vector<std::pair<std::string, std::vector<std::string>>> operations() {
  return {{"all_reduce",
           {"auto", "mesh", "centralized", "tree", "double_tree", "ring_naive", "ring", "halving_doubling", "swing",
            "recursive_doubling", "allpairs", "binomial"}},
          {"reduce", {"auto", "centralized", "tree", "double_tree", "ring", "binomial", "chain", "recursive_halving"}},
          {"broadcast", {"auto", "centralized", "tree", "double_tree", "binomial", "chain", "scatter_allgather"}},
          {"all_gather", {"auto", "centralized", "ring", "recursive_doubling", "bruck", "direct"}},
          {"reduce_scatter", {"auto", "centralized", "ring", "recursive_halving", "pairwise"}},
          {"gather", {"auto", "centralized", "tree", "binomial", "chain"}},
          {"scatter", {"auto", "centralized", "tree", "binomial", "chain"}},
          {"all_to_all", {"auto", "pairwise", "direct"}},
          {"barrier", {"auto", "centralized", "tree", "recursive_doubling", "binomial", "dissemination", "direct"}}};
}

bool may_be_uneven(std::string const& op) { return op == "reduce_scatter" || op == "scatter" || op == "all_to_all"; }

// Draws a round for a fleet whose collectives take about `length`.
Round draw(std::mt19937_64& random, std::size_t elements, std::chrono::microseconds length) {
  constexpr std::array harms{Harm::delay,
                             Harm::cut,
                             Harm::deaf,
                             Harm::mute,
                             Harm::silent,
                             Harm::truncate,
                             Harm::corrupt_frame,
                             Harm::corrupt_frame,
                             Harm::corrupt_payload,
                             Harm::corrupt_payload,
                             Harm::corrupt_payload,
                             Harm::corrupt_answer};
  static auto const table = operations();
  Round round;
  auto const& [op, algorithms] = table.at(random() % table.size());
  round.work = {op, algorithms.at(random() % algorithms.size()), false};
  round.fault = draw_fault(random, harms);
  round.moment = std::chrono::microseconds(random() % static_cast<std::uint64_t>(length.count()));
  round.goes_on = random() % 2 == 0;
  // Uneven counts are for four ranks, and for more than a few elements.
  round.work.is_uneven = elements > 100 && !round.goes_on && may_be_uneven(op) && random() % 2 == 0;
  return round;
}

std::string to_string(Round const& round) {
  return round.work.op + " " + round.work.algorithm + (round.work.is_uneven ? ", uneven, " : ", ") +
         chorus::testing::to_string(round.fault) + " of w" + std::to_string(round.fault.victim) + " after " +
         std::to_string(round.moment.count()) + " us";
}

bool turns_bits(Fault const& fault) {
  return fault.kind == Fault::Kind::harm && (fault.harm == Harm::corrupt_frame || fault.harm == Harm::corrupt_payload ||
                                             fault.harm == Harm::corrupt_answer);
}

void print(char const* what, std::vector<double> values) {
  std::ranges::sort(values);
  std::cout << what << " (min, median, max): " << std::lround(values.front()) << ", "
            << std::lround(values[values.size() / 2]) << ", " << std::lround(values.back()) << std::endl;
}

struct Survived {
  std::map<std::string, std::map<std::string, int>> outcomes;  // by fault
  std::vector<double> ended_ms, well_ms;
  double turned = 0, found = 0;  // changed bits, and links that ended because of them
};

// Disturbs one collective, compares its result and all tensors with the oracle, and checks that the next one succeeds.
void survive(FaultFleet& fleet, Round const& round, std::chrono::milliseconds allowed, Survived& all) {
  fleet.expect_health();
  auto const before = fleet.look();
  auto const turned_before = fleet.proxy(round.fault.victim).harmed();
  auto const found_before = turns_bits(round.fault) ? fleet.corruptions_found() : 0;
  json::value record;
  auto const begun = Clock::now();
  std::thread launch([&] { record = fleet.run(round.work, round.goes_on); });
  std::this_thread::sleep_until(Clock::now() + round.moment);  // the moment of the fault varies
  begin(round.fault, fleet);
  launch.join();
  auto const ended = Clock::now();
  end(round.fault, fleet);
  REQUIRE(fleet.stands_again());
  auto const well = Clock::now();
  auto const outcome = fleet.judge(record, round.work, before,
                                   round.fault.kind == Fault::Kind::kill ? round.fault.victim : FaultFleet::nobody);
  CHECK(ended - begun < allowed);
  auto const then = fleet.look();
  Work const plain{"all_reduce"};
  auto const clean = fleet.run(plain, true);
  CHECK(fleet.judge(clean, plain, then, FaultFleet::nobody).starts_with("succeeded"));
  if (turns_bits(round.fault)) {
    auto const bits = static_cast<double>(fleet.proxy(round.fault.victim).harmed() - turned_before);
    auto const links = fleet.corruptions_found() - found_before;
    CHECK(links >= bits);
    all.turned += bits;
    all.found += links;
  }
  ++all.outcomes[chorus::testing::to_string(round.fault)][outcome];
  all.ended_ms.push_back(std::chrono::duration<double, std::milli>(ended - begun).count());
  all.well_ms.push_back(std::chrono::duration<double, std::milli>(well - ended).count());
}

}  // namespace

TEST_CASE("under any fault every operation is right on all ranks or on none, and the next one succeeds") {
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 40);
  auto const soak = std::chrono::seconds(number_from_environment("CHORUS_SOAK_SECONDS", 0));
  auto const until = Clock::now() + soak;
  std::mt19937_64 random(seed);
  FaultFleet::Setup const setup{.seed = random()};
  FaultFleet fleet(setup);
  Survived all;
  for (std::uint64_t n = 0; soak > 0s ? Clock::now() < until : n < faults; ++n) {
    auto const round = draw(random, setup.elements, 20ms);
    INFO("seed " << seed << ", fault " << n << ": " << to_string(round));
    survive(fleet, round, 12s, all);
  }
  std::cout << all.ended_ms.size() << " faults; " << all.turned << " bits turned on links, each noticed; ends of links "
            << "that say so: " << all.found << std::endl;
  for (auto const& [fault, counts] : all.outcomes)
    for (auto const& [outcome, count] : counts) std::cout << fault << ": " << count << " " << outcome << '\n';
  print("ms until the collective had ended", all.ended_ms);
  print("ms from the fault's end until all four stood again", all.well_ms);
}

TEST_CASE("the same faults hit tensors of one element, of fewer elements than ranks, and of many MiB") {
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 12) / 3;
  struct Size {
    std::size_t elements;
    std::chrono::microseconds length;  // approximate duration of a collective
  };
  for (auto const size : {Size{1, 3ms}, Size{3, 3ms}, Size{4194319, 300ms}}) {
    std::mt19937_64 random(seed);
    FaultFleet::Setup const setup{.seed = random(), .elements = size.elements, .timeout_ms = 10000};
    FaultFleet fleet(setup);
    Survived all;
    for (std::uint64_t n = 0; n < faults; ++n) {
      auto const round = draw(random, size.elements, size.length);
      INFO("seed " << seed << ", " << size.elements << " elements, fault " << n << ": " << to_string(round));
      survive(fleet, round, 30s, all);
    }
    std::cout << size.elements << " elements: " << faults << " faults" << std::endl;
  }
}
