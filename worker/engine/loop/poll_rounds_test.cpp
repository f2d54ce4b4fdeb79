#include "worker/engine/loop/poll_rounds.hpp"

#include <doctest/doctest.h>

using chorus::engine::PollRounds;
using LooksAt = PollRounds::LooksAt;

namespace {

struct Counted {
  unsigned looks = 0, clocks = 0;
};

Counted count(PollRounds& rounds, LooksAt looks_at, unsigned number) {
  Counted counted;
  for (unsigned i = 0; i < number; ++i) {
    rounds.begin(looks_at);
    counted.looks += rounds.looks_further() ? 1 : 0;
    counted.clocks += rounds.reads_clock() ? 1 : 0;
  }
  return counted;
}

}  // namespace

TEST_CASE("a thread that has nothing to poll asks the system in every round") {
  PollRounds rounds;
  CHECK(count(rounds, LooksAt::nothing, 100).looks == 100);
  CHECK(count(rounds, LooksAt::nothing, 100).clocks == 100);
}

TEST_CASE("polling memory looks at the system and at the clock in few rounds") {
  PollRounds rounds;
  count(rounds, LooksAt::memory, PollRounds::lately);
  auto const counted = count(rounds, LooksAt::memory, 10 * PollRounds::per_look_in_memory);
  CHECK(counted.looks == 10);
  CHECK(counted.clocks == 10 * PollRounds::per_look_in_memory / PollRounds::per_clock);
}

TEST_CASE("polling sockets takes long enough to read the clock after each round, and to look further more often") {
  PollRounds rounds;
  count(rounds, LooksAt::few_sockets, PollRounds::lately);
  auto const counted = count(rounds, LooksAt::few_sockets, 10 * PollRounds::per_look);
  CHECK(counted.looks == 10);
  CHECK(counted.clocks == 10 * PollRounds::per_look);
}

TEST_CASE("where something was found lately, rounds look further more often") {
  PollRounds rounds;
  count(rounds, LooksAt::memory, PollRounds::lately);
  rounds.further_moved();
  CHECK(count(rounds, LooksAt::memory, 32 * PollRounds::per_look_lately).looks == 32);
}

TEST_CASE("a round that another thread has asked for looks further, once") {
  PollRounds rounds;
  count(rounds, LooksAt::memory, PollRounds::lately);
  rounds.begin(LooksAt::memory);
  REQUIRE_FALSE(rounds.looks_further());
  rounds.ask();
  rounds.begin(LooksAt::memory);
  CHECK(rounds.looks_further());
  CHECK(rounds.reads_clock());
  rounds.begin(LooksAt::memory);
  CHECK_FALSE(rounds.looks_further());
}
