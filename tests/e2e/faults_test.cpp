// One operation after the other, each with a fault at some moment of it: the health of every service before and after,
// every result against an oracle, every tensor at its old version bit for bit or at the new one, by what the record
// says.
//
//   CHORUS_FAULTS=500 CHORUS_SEED=1 build/release/tests/test_e2e_faults    docs/reliability.md
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

#include "tests/e2e/fault_fleet.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

enum class Fault { kill, stop, stop_beyond_the_lease, harm };

struct Round {
  std::string op;
  Fault fault = Fault::kill;
  Harm harm = Harm::none;
  std::size_t victim = 0;
  std::chrono::microseconds moment{0};
  bool goes_on = false;  // with those that are left, if one is lost

  [[nodiscard]] std::string name() const {
    switch (fault) {
      case Fault::kill:
        return "kill";
      case Fault::stop:
        return "stop";
      case Fault::stop_beyond_the_lease:
        return "stop_beyond_the_lease";
      case Fault::harm:
        return to_string(harm);
    }
    return "";
  }
};

Round draw(std::mt19937_64& random) {
  constexpr std::array ops{"all_reduce", "reduce",  "broadcast",  "all_gather", "reduce_scatter",
                           "gather",     "scatter", "all_to_all", "barrier"};
  constexpr std::array harms{Harm::delay,  Harm::cut,      Harm::deaf,         Harm::mute,
                             Harm::silent, Harm::truncate, Harm::corrupt_frame};
  Round round;
  round.op = ops.at(random() % ops.size());
  auto const kind = random() % 10;
  round.fault = kind < 2    ? Fault::kill
                : kind == 2 ? Fault::stop
                : kind == 3 ? Fault::stop_beyond_the_lease
                            : Fault::harm;
  round.harm = harms.at(random() % harms.size());
  round.victim = random() % FaultFleet::workers_count;
  round.moment = std::chrono::microseconds(random() % 20000);
  round.goes_on = random() % 2 == 0;
  return round;
}

// From the moment of the fault to its end, which comes when the collective has ended.
class Injection {
 public:
  Injection(FaultFleet& fleet, Round const& round) : fleet_(fleet), round_(round) {
    std::this_thread::sleep_until(Clock::now() + round.moment);  // the moment is what varies: it waits for nothing
    auto& victim = fleet_.worker(round.victim);
    if (round.fault == Fault::kill) victim.process.signal(SIGKILL);
    if (is_stop()) victim.process.signal(SIGSTOP);
    if (round.fault == Fault::harm) fleet_.proxy(round.victim).suffer(round.harm);
    if (round.fault == Fault::stop) std::this_thread::sleep_until(Clock::now() + 300ms);  // of its lease
    if (round.fault == Fault::stop) victim.process.signal(SIGCONT);
  }
  void end() {
    if (round_.fault == Fault::kill) fleet_.restart(round_.victim);
    if (is_stop()) fleet_.worker(round_.victim).process.signal(SIGCONT);
    fleet_.proxy(round_.victim).suffer(Harm::none);
  }

 private:
  [[nodiscard]] bool is_stop() const {
    return round_.fault == Fault::stop || round_.fault == Fault::stop_beyond_the_lease;
  }
  FaultFleet& fleet_;
  Round const& round_;
};

void print(char const* what, std::vector<double> values) {
  std::ranges::sort(values);
  std::cout << what << " (min, median, max): " << std::lround(values.front()) << ", "
            << std::lround(values[values.size() / 2]) << ", " << std::lround(values.back()) << std::endl;
}

}  // namespace

TEST_CASE("whatever operation is hit by whatever fault: it is right everywhere or nowhere, and all goes on") {
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 40);
  std::mt19937_64 random(seed);
  FaultFleet fleet(random());
  std::map<std::string, std::map<std::string, int>> outcomes;  // of each fault
  std::vector<double> ended_ms, well_ms;
  for (std::uint64_t n = 0; n < faults; ++n) {
    auto const round = draw(random);
    INFO("seed " << seed << ", fault " << n << ": " << round.op << ", " << round.name() << " of w" << round.victim
                 << " after " << round.moment.count() << " us");
    fleet.expect_health();
    auto const before = fleet.look();
    json::value record;
    auto const begun = Clock::now();
    std::thread launch([&] { record = fleet.run(round.op, round.goes_on); });
    Injection injection(fleet, round);
    launch.join();
    auto const ended = Clock::now();
    injection.end();
    REQUIRE(fleet.stands_again());
    auto const well = Clock::now();
    auto const outcome =
        fleet.judge(record, round.op, before, round.fault == Fault::kill ? round.victim : FaultFleet::nobody);
    CHECK(ended - begun < 12s);
    auto const then = fleet.look();
    auto const clean = fleet.run("all_reduce", true);
    CHECK(fleet.judge(clean, "all_reduce", then, FaultFleet::nobody).starts_with("succeeded"));
    ++outcomes[round.name()][outcome];
    ended_ms.push_back(std::chrono::duration<double, std::milli>(ended - begun).count());
    well_ms.push_back(std::chrono::duration<double, std::milli>(well - ended).count());
  }
  for (auto const& [fault, counts] : outcomes)
    for (auto const& [outcome, count] : counts) std::cout << fault << ": " << count << " " << outcome << '\n';
  print("ms until the collective had ended", ended_ms);
  print("ms from the fault's end until all four stood again", well_ms);
}
