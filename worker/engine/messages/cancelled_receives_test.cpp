// Receives that are taken back: cancelled while they wait, or too late.
#include <doctest/doctest.h>

#include "tests/support/mentions.hpp"
#include "worker/engine/testing/message_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;

TEST_CASE("a cancelled receive takes no message: the next receive gets what arrives later") {
  for (auto const source : {plan::Rank{0}, any_source}) {
    CAPTURE(source);
    MessageMembers members(options_of(3));
    std::vector<std::byte> first(16, std::byte{0xee}), second(16);
    auto const cancelled = members.receive(1, source, 5, first);
    members.fleet.let_move();
    CHECK(members.cancel_last(1));
    REQUIRE(cancelled->has_value());
    CHECK((*cancelled)->was_cancelled);
    CHECK_FALSE((*cancelled)->ends_the_group);
    CHECK(mentions(text(cancelled), "cancelled"));
    auto const send = members.send(0, 1, 5, pattern(16, 1));
    members.fleet.let_move();
    auto const next = members.receive(1, source, 5, second);
    members.fleet.let_move();
    CHECK(is_well(send));
    REQUIRE(is_well(next));
    CHECK(second == pattern(16, 1));
    CHECK(first == std::vector<std::byte>(16, std::byte{0xee}));
  }
}

TEST_CASE("of several receives that fit, the one that was cancelled gives its place to the next") {
  MessageMembers members(options_of(2));
  std::vector<std::byte> a(4), b(4), c(4);
  auto const first = members.receive(1, 0, 5, a);
  auto const second = members.receive(1, 0, 5, b);
  CHECK(members.cancel_last(1));
  auto const third = members.receive(1, 0, 5, c);
  auto const sends = {members.send(0, 1, 5, pattern(4, 1)), members.send(0, 1, 5, pattern(4, 2))};
  members.fleet.let_move();
  for (auto const& each : sends) CHECK(is_well(each));
  REQUIRE(is_well(first));
  REQUIRE(is_well(third));
  CHECK((*second)->was_cancelled);
  CHECK(a == pattern(4, 1));
  CHECK(c == pattern(4, 2));
}

TEST_CASE(
    "wherever a message is on its way, either it or the cancel wins the receive, and the next one gets the rest") {
  for (std::size_t const bytes : {std::size_t{16}, std::size_t{100000}}) {
    int cancelled = 0, received = 0;
    for (std::size_t steps = 0; steps < 60; ++steps) {
      CAPTURE(steps);
      MessageMembers members(options_of(2));
      auto const sent = pattern(bytes, 3);
      std::vector<std::byte> first(bytes), second(bytes);
      auto const receive = members.receive(1, 0, 5, first);
      auto const send = members.send(0, 1, 5, sent);
      members.fleet.let_move(steps);
      bool const wins = members.cancel_last(1);
      (wins ? cancelled : received) += 1;
      auto const next = members.receive(1, 0, wins ? 5 : 6, second);
      members.fleet.let_move();
      CHECK(is_well(send));
      CHECK(is_well(receive) == !wins);
      CHECK(is_well(next) == wins);
      CHECK((wins ? second : first) == sent);
      CHECK((wins ? first : second) == std::vector<std::byte>(bytes));
      CHECK_FALSE(members.cancel(1, 1));
    }
    CHECK(cancelled > 0);
    CHECK(received > 0);
  }
}

TEST_CASE("a receive is cancelled once") {
  MessageMembers members(options_of(2));
  std::vector<std::byte> got(16);
  auto const receive = members.receive(1, 0, 5, got);
  CHECK(members.cancel_last(1));
  CHECK_FALSE(members.cancel_last(1));
  CHECK((*receive)->was_cancelled);
  CHECK_FALSE(members.cancel(1, 4711));
}

TEST_CASE("after a cancelled receive the source may be lost without an end of it a second time") {
  MessageMembers members(options_of(2));
  std::vector<std::byte> got(16);
  auto const cancelled = members.receive(1, 0, 5, got);
  CHECK(members.cancel_last(1));
  auto const waiting = members.receive(1, 0, 6, got);
  members.fleet.let_move();
  members.fleet.kill(0);
  for (int i = 0; i < 10; ++i) {
    members.fleet.let_move();
    members.fleet.pass(std::chrono::milliseconds(50));
  }
  CHECK((*cancelled)->was_cancelled);
  REQUIRE(waiting->has_value());
  CHECK(code(waiting) == EngineErrc::peer_lost);
}
