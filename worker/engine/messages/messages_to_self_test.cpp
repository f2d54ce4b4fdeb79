// Messages of a member to itself: matched as those of others, without a link.
#include <doctest/doctest.h>

#include "tests/support/mentions.hpp"
#include "worker/engine/testing/message_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t large = 5000;  // is not kept

void wait_for(MessageMembers& members, milliseconds time) {
  for (milliseconds passed{0}; passed < time; passed += milliseconds(50)) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
}

}  // namespace

TEST_CASE("a message to oneself arrives whole, whether it is sent before it is received or after, from any source") {
  for (std::uint32_t const ranks : {1, 3})
    for (bool const sends_first : {true, false})
      for (auto const source : {plan::Rank{0}, any_source})
        for (std::size_t const bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, large}) {
          CAPTURE(ranks);
          CAPTURE(sends_first);
          CAPTURE(bytes);
          MessageMembers members(options_of(ranks));
          auto const sent = pattern(bytes, 1);
          std::vector<std::byte> got(bytes + 8, std::byte{0xee});
          MessageMembers::Ended send, receive;
          if (sends_first) {
            send = members.send(0, 0, 5, sent);
            members.fleet.let_move();
            CHECK(send->has_value() == (bytes < large));
          }
          receive = members.receive(0, source, 5, got);
          members.fleet.let_move();
          if (!sends_first) {
            CHECK_FALSE(receive->has_value());
            send = members.send(0, 0, 5, sent);
            members.fleet.let_move();
          }
          REQUIRE(is_well(send));
          REQUIRE(is_well(receive));
          CHECK((*receive)->bytes == bytes);
          CHECK((*receive)->source == 0);
          CHECK(std::equal(sent.begin(), sent.end(), got.begin()));
          CHECK(got[bytes] == std::byte{0xee});
        }
}

TEST_CASE("messages to oneself keep their order, and tags tell them apart") {
  MessageMembers members(options_of(2));
  std::vector<std::vector<std::byte>> got(6, std::vector<std::byte>(large));
  std::vector<MessageMembers::Ended> ended;
  for (unsigned i = 0; i < 6; ++i) ended.push_back(members.send(0, 0, i % 2, pattern(i % 3 == 0 ? large : 10, i)));
  for (unsigned i = 0; i < 6; ++i) ended.push_back(members.receive(0, i % 2 == 0 ? 0 : any_source, i % 2, got[i]));
  members.fleet.let_move();
  for (unsigned i = 0; i < 6; ++i) {
    REQUIRE(is_well(ended[i]));
    REQUIRE(is_well(ended[6 + i]));
    auto const sent = pattern(i % 3 == 0 ? large : 10, i);
    CHECK(std::equal(sent.begin(), sent.end(), got[i].begin()));
  }
}

TEST_CASE("a receive from any source takes the message of this member or of another, whichever is there first") {
  MessageMembers members(options_of(2));
  std::vector<std::byte> a(16), b(16);
  auto const own = members.send(0, 0, 4, pattern(16, 1));
  auto const other = members.send(1, 0, 4, pattern(16, 2));
  members.fleet.let_move();
  auto const first = members.receive(0, any_source, 4, a), second = members.receive(0, any_source, 4, b);
  members.fleet.let_move();
  REQUIRE(is_well(first));
  REQUIRE(is_well(second));
  CHECK((*first)->source == 0);
  CHECK((*second)->source == 1);
  CHECK(is_well(own));
  CHECK(is_well(other));
}

TEST_CASE("what is sent to oneself may change when the send has ended") {
  MessageMembers members(options_of(1));
  auto sent = pattern(16, 1);
  auto const send = members.send_from(0, 0, 1, sent);
  REQUIRE(is_well(send));
  sent.assign(16, std::byte{0});
  std::vector<std::byte> got(16);
  CHECK(is_well(members.receive(0, 0, 1, got)));
  CHECK(got == pattern(16, 1));
}

TEST_CASE("a receive from oneself that no message meets ends alone at its deadline, and can be cancelled") {
  for (auto const source : {plan::Rank{0}, any_source}) {
    MessageMembers members(options_of(1));
    std::vector<std::byte> got(16);
    auto const late = members.receive(0, source, 5, got, milliseconds(300));
    wait_for(members, milliseconds(500));
    REQUIRE(late->has_value());
    CHECK(code(late) == EngineErrc::deadline_exceeded);
    CHECK(mentions(text(late), "no message with tag 5"));
    CHECK_FALSE((*late)->ends_the_group);
    auto const cancelled = members.receive(0, source, 5, got);
    CHECK(members.cancel_last(0));
    CHECK((*cancelled)->was_cancelled);
    CHECK(is_well(members.send(0, 0, 5, pattern(16, 1))));
    CHECK(is_well(members.receive(0, source, 5, got)));
  }
}

TEST_CASE("a large message that this member sends itself and does not receive fails at its deadline") {
  MessageMembers members(options_of(1));
  auto const send = members.send(0, 0, 5, pattern(large, 1), milliseconds(300));
  wait_for(members, milliseconds(500));
  REQUIRE(send->has_value());
  CHECK(code(send) == EngineErrc::deadline_exceeded);
  CHECK(mentions(text(send), "rank 0 (w0) has not received"));
  CHECK((*send)->ends_the_group);
}

TEST_CASE("a receive that is too small for this member's own message writes nothing, and both calls say so") {
  for (std::size_t const bytes : {std::size_t{9}, large}) {
    MessageMembers members(options_of(1));
    std::vector<std::byte> got(8, std::byte{0xee});
    auto const receive = members.receive(0, 0, 5, got);
    auto const send = members.send(0, 0, 5, pattern(bytes, 1));
    for (auto const& each : {receive, send}) {
      REQUIRE(each->has_value());
      CHECK(code(each) == EngineErrc::plan_mismatch);
      CHECK((*each)->culprits == std::vector<plan::Rank>{0});
    }
    CHECK(got == std::vector<std::byte>(8, std::byte{0xee}));
  }
}

TEST_CASE("messages to oneself that wait for a receive are bounded") {
  auto options = options_of(1);
  options.early_runs = 8;
  MessageMembers members(options);
  for (unsigned i = 0; i < 8; ++i) CHECK(is_well(members.send(0, 0, 5, pattern(4, i))));
  auto const one_more = members.send(0, 0, 5, pattern(4, 8));
  REQUIRE(one_more->has_value());
  CHECK(code(one_more) == EngineErrc::aborted);
  CHECK(mentions(text(one_more), "more than 8 messages or"));
  CHECK((*one_more)->ends_the_group);
}

TEST_CASE("what waits of a member's messages to itself ends when it leaves") {
  MessageMembers members(options_of(1));
  std::vector<std::byte> got(16);
  auto const kept = members.send(0, 0, 5, pattern(16, 1));
  auto const waiting = members.send(0, 0, 5, pattern(large, 1));
  auto const receive = members.receive(0, 0, 6, got);
  members.close(0);
  CHECK(is_well(kept));
  for (auto const& each : {waiting, receive}) {
    REQUIRE(each->has_value());
    CHECK(code(each) == EngineErrc::aborted);
    CHECK(mentions(text(each), "the group was left"));
  }
}
