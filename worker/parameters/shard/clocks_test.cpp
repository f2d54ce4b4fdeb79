#include <doctest/doctest.h>

#include <map>
#include <random>

#include "worker/parameters/shard/clocks.hpp"

namespace chorus::parameters {

TEST_CASE("without staleness nothing is counted, and everything is open") {
  Clocks const clocks(-1, {});
  CHECK_FALSE(clocks.count());
  CHECK(clocks.is_open(1000));
}

TEST_CASE("staleness 0: a clock is open when all clients have done the clock before") {
  Clocks clocks(0, {"a", "b"});
  CHECK(clocks.is_open(0));
  CHECK_FALSE(clocks.is_open(1));
  clocks.advance(0, 0);
  CHECK(clocks.awaited(1) == std::vector<std::string>{"b"});
  clocks.advance(1, 0);
  CHECK(clocks.is_open(1));
  CHECK_FALSE(clocks.is_open(2));
}

TEST_CASE("the largest clock does not overflow") {
  Clocks const clocks(3, {"a"});
  CHECK_FALSE(clocks.is_open(UINT64_MAX));
  CHECK(clocks.awaited(UINT64_MAX) == std::vector<std::string>{"a"});
}

TEST_CASE(
    "changed clients: clients that stay keep their clocks, a new one begins with the slowest, others are forgotten") {
  Clocks clocks(0, {"a", "b", "c"});
  for (std::uint64_t clock = 0; clock < 5; ++clock) {
    clocks.advance(0, clock);
    clocks.advance(1, clock);
  }
  clocks.advance(0, 5);
  CHECK(clocks.awaited(5) == std::vector<std::string>{"c"});
  clocks.change({"b", "a", "d"});
  CHECK(clocks.is_open(5));
  CHECK(clocks.done(*clocks.place("a")) == 6);
  CHECK(clocks.done(*clocks.place("d")) == 5);
  CHECK_FALSE(clocks.place("c").has_value());
}

// Compares with the definition: a reader at clock c has seen every push of the clocks up to c - staleness - 1.
TEST_CASE("a reader never sees less than its staleness allows, and never waits for more") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    auto const staleness = static_cast<std::int64_t>(random() % 4);
    std::vector<std::string> const names{"a", "b", "c"};
    Clocks clocks(staleness, names);
    std::map<std::string, std::int64_t> pushed{{"a", 0}, {"b", 0}, {"c", 0}};  // clocks 0 .. n - 1 of each
    for (int step = 0; step < 60; ++step) {
      auto const who = random() % names.size();
      auto const clock = pushed[names[who]];
      bool may = true;
      for (auto const& [name, done] : pushed)
        for (std::int64_t needed = 0; needed <= clock - staleness - 1; ++needed) may &= needed < done;
      CHECK(clocks.is_open(static_cast<std::uint64_t>(clock)) == may);
      if (!may) continue;
      clocks.advance(who, static_cast<std::uint64_t>(clock));
      ++pushed[names[who]];
    }
  }
}

}  // namespace chorus::parameters
