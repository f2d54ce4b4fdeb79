// Messages between engines, over links whose time belongs to the test.
#include "worker/engine/messages/messages.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/failing_runs.hpp"
#include "worker/engine/testing/message_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using std::chrono::milliseconds;

namespace {

using Members = MessageMembers;

}  // namespace

TEST_CASE("a message arrives whole, whether it is sent before it is received or after, at any size") {
  for (bool const sends_first : {true, false})
    for (std::size_t const bytes : {0, 1, 959, 960, 961, 20000, 1000000})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(sends_first);
        CAPTURE(bytes);
        Members members(options_of(2, seed));
        auto const sent = pattern(bytes, 1);
        std::vector<std::byte> got(bytes + 8, std::byte{0xee});
        Members::Ended send, receive;
        if (sends_first) {
          send = members.send(0, 1, 5, sent);
          members.fleet.let_move();
        }
        receive = members.receive(1, 0, 5, got);
        members.fleet.let_move();
        if (!sends_first) send = members.send(0, 1, 5, sent);
        members.fleet.let_move();
        REQUIRE(is_well(send));
        REQUIRE(is_well(receive));
        CHECK((*receive)->bytes == bytes);
        CHECK((*receive)->source == 0);
        CHECK(std::equal(sent.begin(), sent.end(), got.begin()));
        CHECK(got[bytes] == std::byte{0xee});
      }
}

TEST_CASE("a small message is sent without a receive, a large one waits for it") {
  Members members(options_of(2));
  auto const small = pattern(64, 1), large = pattern(5000, 2);
  auto const first = members.send(0, 1, 1, small), second = members.send(0, 1, 2, large);
  members.fleet.let_move();
  CHECK(is_well(first));
  CHECK_FALSE(second->has_value());
  std::vector<std::byte> got(5000);
  auto const received = members.receive(1, 0, 2, got);
  members.fleet.let_move();
  CHECK(is_well(second));
  CHECK(is_well(received));
  CHECK(got == large);
}

TEST_CASE("messages of one tag keep their order, small and large ones mixed") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Members members(options_of(2, seed));
    std::vector<std::vector<std::byte>> sent, got;
    std::vector<Members::Ended> ended;
    for (unsigned i = 0; i < 12; ++i) sent.push_back(pattern(i % 3 == 0 ? 3000 + i : 10 + i, i));
    for (auto const& each : sent) got.emplace_back(each.size());
    for (unsigned i = 0; i < 12; ++i) {
      if (i % 2 == 0) ended.push_back(members.receive(1, 0, 3, got[i / 2]));
      ended.push_back(members.send(0, 1, 3, sent[i]));
      members.fleet.let_move(seed);
    }
    for (unsigned i = 6; i < 12; ++i) ended.push_back(members.receive(1, 0, 3, got[i]));
    members.fleet.let_move();
    for (auto const& each : ended) REQUIRE(is_well(each));
    CHECK(got == sent);
  }
}

TEST_CASE("two members that send a large message each and then receive do not wait for each other") {
  Members members(options_of(2));
  auto const a = pattern(100000, 1), b = pattern(100000, 2);
  std::vector<std::byte> at_0(100000), at_1(100000);
  auto const sends = {members.send(0, 1, 0, a), members.send(1, 0, 0, b)};
  members.fleet.let_move();
  auto const receives = {members.receive(0, 1, 0, at_0), members.receive(1, 0, 0, at_1)};
  members.fleet.let_move();
  for (auto const& each : sends) CHECK(is_well(each));
  for (auto const& each : receives) CHECK(is_well(each));
  CHECK(at_0 == b);
  CHECK(at_1 == a);
}

TEST_CASE("a receive from any source takes what comes first, and says from whom") {
  Members members(options_of(3));
  std::vector<std::byte> got(16);
  auto const first = members.receive(0, any_source, 4, got);
  members.fleet.let_move();
  auto const send = members.send(2, 0, 4, pattern(16, 9));
  members.fleet.let_move();
  REQUIRE(is_well(first));
  CHECK((*first)->source == 2);
  CHECK(got == pattern(16, 9));
}

TEST_CASE("messages go on while a collective of the same ranks is under way") {
  Members members(options_of(2));
  Collective collective(members.fleet, case_of(algorithms::ring), members.fleet.now());
  collective.start(0);
  std::vector<std::byte> got(16);
  auto const receive = members.receive(1, 0, 4, got);
  auto const send = members.send(0, 1, 4, pattern(16, 9));
  members.fleet.let_move();
  CHECK(is_well(receive));
  CHECK(is_well(send));
  collective.start(1);
  REQUIRE(collective.finish());
  CHECK(collective.result(0).status.has_value());
}

TEST_CASE("a receive that is too small tells both sides and writes nothing") {
  for (std::size_t const bytes : {9, 5000})
    for (bool const sends_first : {true, false}) {
      CAPTURE(bytes);
      CAPTURE(sends_first);
      Members members(options_of(2));
      std::vector<std::byte> got(16, std::byte{0xee});
      Members::Ended send;
      auto const sent = pattern(bytes, 1);
      if (sends_first) send = members.send(0, 1, 5, sent);
      members.fleet.let_move();
      auto const receive = members.receive(1, 0, 5, std::span(got).first(8));
      if (!sends_first) send = members.send(0, 1, 5, sent);
      members.fleet.let_move();
      REQUIRE(receive->has_value());
      CHECK(code(receive) == EngineErrc::plan_mismatch);
      CHECK(text(receive) ==
            "rank 0 (w0) sends " + std::to_string(bytes) + " bytes with tag 5, rank 1 (w1) receives at most 8");
      CHECK((*receive)->culprits == std::vector<plan::Rank>{0, 1});
      CHECK(got == std::vector<std::byte>(16, std::byte{0xee}));
      // A small message was sent long ago: its sender is told at the next call.
      auto const told = bytes == 9 ? members.send(0, 1, 5, sent) : send;
      members.fleet.let_move();
      REQUIRE(told->has_value());
      CHECK(code(told) == EngineErrc::plan_mismatch);
      CHECK(mentions(text(told), "receives at most 8"));
    }
}

TEST_CASE("a receive that no message has met until its deadline fails alone, and names the rank") {
  Members members(options_of(2));
  std::vector<std::byte> got(16);
  auto const late = members.receive(1, 0, 5, got, milliseconds(300));
  for (int i = 0; i < 10; ++i) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
  REQUIRE(late->has_value());
  CHECK(code(late) == EngineErrc::deadline_exceeded);
  CHECK(mentions(text(late), "no message with tag 5 from rank 0 (w0)"));
  CHECK((*late)->culprits == std::vector<plan::Rank>{0});
  CHECK_FALSE((*late)->ends_the_group);
  auto const send = members.send(0, 1, 5, pattern(16, 1));
  auto const receive = members.receive(1, 0, 5, got);
  members.fleet.let_move();
  CHECK(is_well(send));
  CHECK(is_well(receive));
}

TEST_CASE("a large message that nobody receives fails at its deadline, and the receiver hears of it") {
  Members members(options_of(2));
  auto const sent = pattern(5000, 1);
  std::vector<std::byte> got(5000);
  auto const other = members.receive(1, 0, 6, got, milliseconds(5000));
  auto const send = members.send(0, 1, 5, sent, milliseconds(300));
  for (int i = 0; i < 10; ++i) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
  REQUIRE(send->has_value());
  CHECK(code(send) == EngineErrc::deadline_exceeded);
  CHECK((*send)->culprits == std::vector<plan::Rank>{1});
  CHECK((*send)->ends_the_group);
  members.fleet.let_move();
  REQUIRE(other->has_value());
  CHECK(code(other) == EngineErrc::deadline_exceeded);
}

TEST_CASE("a member that is killed is named to those that wait for its message, or for it to take one") {
  for (bool const has_links : {true, false}) {
    CAPTURE(has_links);
    Members members(options_of(3));
    std::vector<std::byte> got(16), more(16);
    if (has_links) {
      auto const before = members.receive(1, 0, 1, got);
      auto const sent = members.send(0, 1, 1, got);
      members.fleet.let_move();
      REQUIRE(is_well(before));
    }
    auto const receive = members.receive(1, 0, 5, got);
    auto const large = pattern(5000, 1);
    auto const send = members.send(2, 0, 5, large);
    auto const any = members.receive(2, any_source, 5, more);
    members.fleet.let_move();
    members.fleet.kill(0);
    for (int i = 0; i < 10; ++i) {
      members.fleet.let_move();
      members.fleet.pass(milliseconds(50));
    }
    for (auto const& each : {receive, send, any}) {
      REQUIRE(each->has_value());
      CHECK(code(each) == EngineErrc::peer_lost);
      CHECK((*each)->culprits == std::vector<plan::Rank>{0});
      CHECK(mentions(text(each), "w0"));
    }
  }
}

TEST_CASE("a member that is stopped is named to those that wait for its message") {
  Members members(options_of(2));
  std::vector<std::byte> got(16);
  auto const receive = members.receive(1, 0, 5, got, milliseconds(60000));
  members.fleet.let_move();
  members.fleet.stop(0);
  for (int i = 0; i < 200 && !receive->has_value(); ++i) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
  REQUIRE(receive->has_value());
  CHECK(code(receive) == EngineErrc::peer_lost);
  CHECK((*receive)->culprits == std::vector<plan::Rank>{0});
}

TEST_CASE("a message whose sender is killed before it is received is reported, not waited for") {
  Members members(options_of(2));
  std::vector<std::byte> got(16);
  auto const other = members.receive(1, 0, 6, got);  // rank 1 has begun with messages
  auto const send = members.send(0, 1, 5, pattern(16, 1));
  members.fleet.let_move();
  REQUIRE(is_well(send));
  members.fleet.kill(0);
  members.fleet.let_move();
  auto const receive = members.receive(1, 0, 5, got);
  members.fleet.let_move();
  for (auto const& each : {other, receive}) {
    REQUIRE(each->has_value());
    CHECK(code(each) == EngineErrc::peer_lost);
  }
}

TEST_CASE("messages that nobody receives are bounded, and both sides are told") {
  auto options = options_of(2);
  options.early_runs = 8;
  Members members(options);
  std::vector<std::byte> got(16);
  auto const other = members.receive(1, 0, 1, got);
  std::vector<Members::Ended> sends;
  for (unsigned i = 0; i < 10; ++i) {  // the first is a run: there is no link yet
    sends.push_back(members.send(0, 1, 5, pattern(4, i)));
    members.fleet.let_move();
  }
  REQUIRE(other->has_value());
  CHECK(code(other) == EngineErrc::aborted);
  CHECK(mentions(text(other), "more than 8 messages or"));
  auto const next = members.send(0, 1, 5, pattern(4, 0));
  members.fleet.let_move();
  REQUIRE(next->has_value());
  CHECK(mentions(text(next), "more than 8 messages or"));
}

TEST_CASE("a member that leaves ends what waits, here and at its peers") {
  Members members(options_of(2));
  auto const large = pattern(5000, 1);
  std::vector<std::byte> got(16);
  auto const send = members.send(0, 1, 5, large);
  auto const receive = members.receive(1, 0, 6, got);
  members.fleet.let_move();
  members.close(1);
  members.fleet.let_move();
  for (auto const& each : {send, receive}) {
    REQUIRE(each->has_value());
    CHECK(code(each) == EngineErrc::aborted);
    CHECK(mentions(text(each), "the group was left"));
  }
  auto const later = members.receive(1, 0, 6, got);
  REQUIRE(later->has_value());
  CHECK((*later)->ends_the_group);
}

TEST_CASE("a message of a retired epoch is refused") {
  Members members(options_of(2));
  members.fleet.engine(1).retire({4711, 1, {EngineErrc::peer_lost, "g went on without rank 0 (w0)", {0}, {}}, {"w0"}});
  auto const large = pattern(5000, 1);
  auto const send = members.send(0, 1, 5, large);
  members.fleet.let_move();
  REQUIRE(send->has_value());
  CHECK(code(send) == EngineErrc::epoch_fenced);
}

TEST_CASE("members that share memory pass messages through it, whether or not they lie in an arena") {
  for (bool const in_arena : {true, false})
    for (std::size_t const bytes : {0, 4, 2000, 300000}) {
      auto options = options_of(2);
      options.arenas = make_arenas(2);
      Members members(options);
      auto& fleet = members.fleet;
      auto const sent = pattern(bytes, 3);
      auto const from = in_arena ? fleet.allocate(0, bytes + 1) : fleet.Fleet::allocate(0, bytes + 1);
      std::copy(sent.begin(), sent.end(), from.bytes.begin());
      std::vector<std::byte> got(bytes);
      auto const receive = members.receive(1, 0, 5, got);
      auto const send = members.send_from(0, 1, 5, from.bytes.first(bytes));
      fleet.let_move();
      CHECK(is_well(receive));
      CHECK(is_well(send));
      CHECK(got == sent);
    }
}
