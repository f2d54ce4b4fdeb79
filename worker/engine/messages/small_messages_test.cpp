// Small messages: frames without runs, whenever they arrive, and what happens to those that nobody can take.
#include <doctest/doctest.h>

#include "tests/support/mentions.hpp"
#include "worker/engine/testing/message_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t large = 1 << 20;  // carried by a run

// Two members that have a link in each direction, so that small messages need no run.
class Linked : public MessageMembers {
 public:
  explicit Linked(FleetOptions options) : MessageMembers(std::move(options)) {
    for (plan::Rank rank = 0; rank < 2; ++rank) {
      Bytes got(4);
      auto const receive = this->receive(1 - rank, rank, 99, got);
      auto const send = this->send(rank, 1 - rank, 99, Bytes(4));
      fleet.let_move();
      REQUIRE(is_well(receive));
      REQUIRE(is_well(send));
    }
  }
};

// Another group of the same two workers, of which rank 0 sends to rank 1.
class OtherGroup {
 public:
  OtherGroup(LoopbackFleet& fleet, std::uint32_t epoch) : fleet_(fleet) {
    for (plan::Rank rank = 0; rank < 2; ++rank)
      groups_.push_back(
          std::make_shared<MessageGroup>(GroupMembership{"other", epoch, rank, {fleet.peer(0), fleet.peer(1)}, 77}));
  }
  MessageMembers::Ended send(std::vector<std::byte> const& content) {
    MessageRequest request{MessageWay::send, 1, 5, content, {}, fleet_.now() + milliseconds(1000), 0};
    return begin(0, request);
  }
  MessageMembers::Ended receive(std::span<std::byte> to) {
    MessageRequest request{MessageWay::receive, 0, 5, {}, to, fleet_.now() + milliseconds(1000), 0};
    request.number = groups_[1]->draw_receive();
    return begin(1, request);
  }

 private:
  MessageMembers::Ended begin(plan::Rank rank, MessageRequest const& request) {
    auto ended = std::make_shared<std::optional<MessageResult>>();
    fleet_.engine(rank).begin_message(groups_[rank], request,
                                      [ended](MessageResult result) { *ended = std::move(result); });
    return ended;
  }

  LoopbackFleet& fleet_;
  std::vector<std::shared_ptr<MessageGroup>> groups_;
};

FleetOptions sharing(std::uint32_t ranks) {
  auto options = options_of(ranks);
  options.arenas = make_arenas(ranks);
  return options;
}

}  // namespace

TEST_CASE("a small message needs no run: it is sent when its call returns, and received when it arrives") {
  for (bool const shares_memory : {false, true})
    for (bool const sends_first : {false, true})
      for (std::size_t const bytes : {0, 1, 8, 9, 1024}) {
        CAPTURE(shares_memory);
        CAPTURE(sends_first);
        CAPTURE(bytes);
        Linked members(shares_memory ? sharing(2) : options_of(2));
        auto const sent = pattern(bytes, 1);
        std::vector<std::byte> got(bytes + 8, std::byte{0xee});
        MessageMembers::Ended receive;
        if (!sends_first) receive = members.receive(1, 0, 5, got);
        auto const send = members.send(0, 1, 5, sent);
        CHECK(is_well(send));
        CHECK(members.fleet.engine(0).progress(std::nullopt).empty());
        members.fleet.let_move();
        if (sends_first) receive = members.receive(1, 0, 5, got);
        REQUIRE(is_well(receive));
        CHECK((*receive)->source == 0);
        CHECK((*receive)->bytes == bytes);
        CHECK(std::equal(sent.begin(), sent.end(), got.begin()));
        CHECK(got[bytes] == std::byte{0xee});
      }
}

TEST_CASE("small and large messages of one tag are received in the order in which they were sent, over any link") {
  for (bool const shares_memory : {false, true})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(seed);
      auto options = shares_memory ? sharing(2) : options_of(2, seed);
      Linked members(options);
      constexpr unsigned count = 24;
      std::vector<std::vector<std::byte>> got;
      std::vector<MessageMembers::Ended> ended;
      auto const size = [seed](unsigned i) { return (i + seed) % 3 == 0 ? 3000 + i : 10 + i; };
      for (unsigned i = 0; i < count; ++i) got.emplace_back(size(i));
      for (unsigned i = 0; i < count; ++i) {
        if (i % 2 == 0) ended.push_back(members.receive(1, i % 4 == 0 ? 0 : any_source, 3, got[i / 2]));
        ended.push_back(members.send(0, 1, 3, pattern(size(i), i)));
        members.fleet.let_move(seed);
      }
      for (unsigned i = count / 2; i < count; ++i) ended.push_back(members.receive(1, 0, 3, got[i]));
      members.fleet.let_move();
      for (auto const& each : ended) REQUIRE(is_well(each));
      for (unsigned i = 0; i < count; ++i) REQUIRE(got[i] == pattern(size(i), i));
    }
}

TEST_CASE("when the link is full, small messages become runs, and arrive in order all the same") {
  for (bool const shares_memory : {false, true}) {
    Linked members(shares_memory ? sharing(2) : options_of(2));
    constexpr unsigned count = 200;
    std::vector<MessageMembers::Ended> sends, receives;
    for (unsigned i = 0; i < count; ++i) sends.push_back(members.send(0, 1, 5, pattern(1000, i)));
    CHECK_FALSE(members.fleet.engine(0).progress(std::nullopt).empty());
    std::vector<std::vector<std::byte>> got(count, std::vector<std::byte>(1000));
    for (auto& each : got) receives.push_back(members.receive(1, 0, 5, each));
    members.fleet.let_move();
    for (auto const& each : sends) REQUIRE(is_well(each));
    for (unsigned i = 0; i < count; ++i) {
      REQUIRE(is_well(receives[i]));
      REQUIRE(got[i] == pattern(1000, i));
    }
  }
}

TEST_CASE("small messages wait for a member that has not called any message yet") {
  Linked members(options_of(2));
  OtherGroup group(members.fleet, 1);
  auto const a = pattern(8, 1), b = pattern(9, 2);
  for (auto const& content : {a, b}) {
    CHECK(is_well(group.send(content)));
    members.fleet.let_move();
  }
  for (auto const& expected : {a, b}) {
    std::vector<std::byte> got(expected.size());
    CHECK(is_well(group.receive(got)));
    CHECK(got == expected);
  }
}

TEST_CASE("small messages of an epoch that is retired, before or after they arrive, are refused to their sender") {
  for (bool const is_retired_before : {true, false}) {
    CAPTURE(is_retired_before);
    Linked members(options_of(2));
    OtherGroup group(members.fleet, 3);
    auto const content = pattern(8, 1);
    auto const retire = [&] {
      members.fleet.engine(1).retire(
          {77, 3, {EngineErrc::peer_lost, "other went on without rank 0 (w0)", {0}, {}}, {"w0"}});
      members.fleet.let_move();
    };
    if (is_retired_before) retire();
    CHECK(is_well(group.send(content)));
    members.fleet.let_move();
    if (!is_retired_before) retire();
    auto const next = group.send(content);
    REQUIRE(next->has_value());
    CHECK(code(next) == EngineErrc::epoch_fenced);
  }
}

TEST_CASE("a receive that is too small for a small message tells both sides and writes nothing") {
  for (bool const sends_first : {true, false}) {
    CAPTURE(sends_first);
    Linked members(options_of(2));
    std::vector<std::byte> got(16, std::byte{0xee});
    MessageMembers::Ended receive;
    if (!sends_first) receive = members.receive(1, 0, 5, std::span(got).first(8));
    CHECK(is_well(members.send(0, 1, 5, pattern(9, 1))));
    members.fleet.let_move();
    if (sends_first) receive = members.receive(1, 0, 5, std::span(got).first(8));
    members.fleet.let_move();
    auto const next = members.send(0, 1, 5, pattern(9, 1));
    for (auto const& told : {receive, next}) {
      REQUIRE(told->has_value());
      CHECK(code(told) == EngineErrc::plan_mismatch);
      CHECK(mentions(text(told), "rank 0 (w0) sends 9 bytes with tag 5, rank 1 (w1) receives at most 8"));
      CHECK((*told)->culprits == std::vector<plan::Rank>{0, 1});
    }
    CHECK(got == std::vector<std::byte>(16, std::byte{0xee}));
  }
}

TEST_CASE("messages that have arrived are received after their sender was killed, and those that have not name it") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    Linked members(shares_memory ? sharing(2) : options_of(2));
    std::vector<std::byte> first(16), second(16);
    CHECK(is_well(members.send(0, 1, 5, pattern(16, 1))));
    members.fleet.let_move();
    members.fleet.kill(0);
    members.fleet.let_move();
    CHECK(is_well(members.receive(1, 0, 5, first)));
    CHECK(first == pattern(16, 1));
    auto const missing = members.receive(1, 0, 5, second);
    for (int i = 0; i < 10; ++i) {
      members.fleet.let_move();
      members.fleet.pass(milliseconds(50));
    }
    REQUIRE(missing->has_value());
    CHECK(code(missing) == EngineErrc::peer_lost);
    CHECK((*missing)->culprits == std::vector<plan::Rank>{0});
    auto const send = members.send(1, 0, 5, first);
    members.fleet.let_move();
    REQUIRE(send->has_value());
    CHECK(code(send) == EngineErrc::peer_lost);
  }
}

TEST_CASE("a member that is killed with small messages on the way is named, wherever they are") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (std::size_t steps = 0; steps < 8; ++steps) {
      CAPTURE(seed);
      CAPTURE(steps);
      Linked members(options_of(2, seed));
      std::vector<std::vector<std::byte>> got(4, std::vector<std::byte>(1000));
      std::vector<MessageMembers::Ended> receives;
      for (auto& each : got) receives.push_back(members.receive(1, 0, 5, each));
      for (unsigned i = 0; i < 3; ++i) static_cast<void>(members.send(0, 1, 5, pattern(1000, i)));
      members.fleet.let_move(steps);
      members.fleet.kill(0);
      for (int i = 0; i < 10; ++i) {
        members.fleet.let_move();
        members.fleet.pass(milliseconds(50));
      }
      for (unsigned i = 0; i < 4; ++i) {
        REQUIRE(receives[i]->has_value());
        if (is_well(receives[i])) {
          CHECK(got[i] == pattern(1000, i));
        } else {
          CHECK(code(receives[i]) == EngineErrc::peer_lost);
          CHECK((*receives[i])->culprits == std::vector<plan::Rank>{0});
        }
      }
      CHECK_FALSE(is_well(receives[3]));
    }
}

TEST_CASE("small messages that nobody receives are bounded by their number, and both sides are told") {
  auto options = options_of(2);
  options.early_runs = 8;
  Linked members(options);
  for (unsigned i = 0; i < 9; ++i) {
    CHECK(is_well(members.send(0, 1, 5, pattern(4, i))));
    members.fleet.let_move();
  }
  std::vector<std::byte> got(4);
  for (auto const& told : {members.receive(1, 0, 5, got), members.send(0, 1, 5, pattern(4, 0))}) {
    REQUIRE(told->has_value());
    CHECK(code(told) == EngineErrc::aborted);
    CHECK(mentions(text(told), "more than 8 messages or 33554432 bytes of rank 0 (w0) wait for a receive of rank 1"));
  }
}

TEST_CASE("a member whose messages have ended refuses small ones that arrive later, with the reason") {
  Linked members(options_of(3));
  std::vector<std::byte> got(4);
  auto const lost = members.receive(1, 2, 5, got, milliseconds(5000));
  members.fleet.kill(2);
  for (int i = 0; i < 10; ++i) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
  REQUIRE(lost->has_value());
  CHECK(code(lost) == EngineErrc::peer_lost);
  CHECK(is_well(members.send(0, 1, 5, pattern(4, 1))));
  members.fleet.let_move();
  auto const next = members.send(0, 1, 5, pattern(4, 2));
  REQUIRE(next->has_value());
  CHECK(code(next) == EngineErrc::peer_lost);
  CHECK((*next)->culprits == std::vector<plan::Rank>{2});
}

TEST_CASE("small messages that wait for a group are bounded by their number, and their sender is told") {
  auto options = options_of(2);
  options.early_runs = 8;
  Linked members(options);
  OtherGroup group(members.fleet, 1);
  auto const content = pattern(8, 1);
  for (int i = 0; i < 9; ++i) {
    CHECK(is_well(group.send(content)));
    members.fleet.let_move();
  }
  auto const next = group.send(content);
  REQUIRE(next->has_value());
  CHECK(code(next) == EngineErrc::aborted);
  CHECK(mentions(text(next), "more than 8 messages of w0 wait for the first message call"));
}

TEST_CASE("a member that was sent too much before its first message call is told by that call") {
  for (auto const bytes : {std::size_t{4}, large}) {
    CAPTURE(bytes);
    auto options = options_of(2);
    options.early_runs = 8;
    MessageMembers members(options);
    for (unsigned i = 0; i < 12; ++i) {
      static_cast<void>(members.send(0, 1, 5, pattern(bytes, i)));
      members.fleet.let_move();
    }
    std::vector<std::byte> got(bytes);
    auto const receive = members.receive(1, 0, 5, got);
    auto const answer = members.send(1, 0, 5, pattern(4, 1));
    for (auto const& each : {receive, answer}) {
      REQUIRE(each->has_value());
      CHECK(code(each) == EngineErrc::aborted);
      CHECK(mentions(text(each), "more than 8 "));
      CHECK((*each)->ends_the_group);
    }
  }
}

TEST_CASE("a large message to a member whose messages have ended is refused, with the reason") {
  MessageMembers members(options_of(3));
  std::vector<std::byte> got(4), into(large);
  auto const lost = members.receive(1, 2, 5, got, milliseconds(5000));
  members.fleet.kill(2);
  for (int i = 0; i < 10; ++i) {
    members.fleet.let_move();
    members.fleet.pass(milliseconds(50));
  }
  REQUIRE(lost->has_value());
  auto const sent = members.send(0, 1, 5, pattern(large, 1), milliseconds(60000));
  members.fleet.let_move();
  REQUIRE(sent->has_value());
  CHECK(code(sent) == EngineErrc::peer_lost);
}

TEST_CASE("a receive ends with the engine, whether or not its watch has begun, and none begins afterwards") {
  for (bool const has_watch : {false, true}) {
    Linked members(options_of(2));
    std::vector<std::byte> got(4);
    auto const receive = members.receive(1, 0, 5, got);
    if (has_watch) members.fleet.let_move();
    CHECK(members.fleet.engine(1).is_busy());
    members.fleet.engine(1).stop();
    REQUIRE(receive->has_value());
    auto const later = members.receive(1, 0, 5, got);
    for (auto const& each : {receive, later}) {
      REQUIRE(each->has_value());
      CHECK(code(each) == EngineErrc::aborted);
    }
    CHECK_FALSE(members.fleet.engine(1).is_busy());
  }
}

TEST_CASE("only a receive that still waits at the second look gets a watch") {
  Linked members(options_of(2));
  auto& engine = members.fleet.engine(1);
  std::vector<std::byte> got(4);
  auto const receive = members.receive(1, 0, 5, got);
  auto const watches = [&] { return engine.progress(std::nullopt).size(); };
  CHECK(watches() == 0);
  CHECK(engine.has_unwatched_receives());
  engine.watch_receives(false);
  CHECK(watches() == 0);
  engine.watch_receives(false);
  CHECK(watches() == 1);
  CHECK_FALSE(engine.has_unwatched_receives());
  CHECK(is_well(members.send(0, 1, 5, pattern(4, 1))));
  members.fleet.let_move();
  CHECK(is_well(receive));
  CHECK(watches() == 0);
}
