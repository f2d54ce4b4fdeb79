// Small messages that need nothing else: sent at once, and received from the ring in shared memory where they arrive.
#include <doctest/doctest.h>

#include "worker/engine/testing/message_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

FleetOptions sharing(std::uint32_t ranks) {
  auto options = options_of(ranks);
  options.arenas = make_arenas(ranks);
  options.eager_bytes = 65536;
  return options;
}

// All members have sent a message to each other one, so that they have links.
class Linked : public MessageMembers {
 public:
  explicit Linked(std::uint32_t ranks = 2) : Linked(sharing(ranks)) {}
  explicit Linked(FleetOptions const& options) : MessageMembers(options) {
    for (plan::Rank from = 0; from < options.ranks; ++from)
      for (plan::Rank to = 0; to < options.ranks; ++to)
        if (from != to) pass(from, to);
  }
  void pass(plan::Rank from, plan::Rank to) {
    Bytes got(4);
    auto const receive = this->receive(to, from, 99, got);
    auto const send = this->send(from, to, 99, Bytes(4));
    fleet.let_move();
    REQUIRE(is_well(receive));
    REQUIRE(is_well(send));
  }
};

}  // namespace

TEST_CASE(
    "a message is taken from the ring where it arrived, byte for byte and in order, and nothing else is written") {
  Linked members;
  for (std::size_t const bytes : {0, 1, 8, 9, 1024, 2040}) {
    CAPTURE(bytes);
    for (unsigned i = 0; i < 3; ++i) REQUIRE(members.send_at_once(0, 1, 5, pattern(bytes, i)));
    for (unsigned i = 0; i < 3; ++i) {
      std::vector<std::byte> got(bytes + 8, std::byte{0xee});
      auto const received = members.receive_at_once(1, 0, 5, got);
      REQUIRE(received);
      CHECK(*received == bytes);
      auto expected = pattern(bytes, i);
      expected.resize(bytes + 8, std::byte{0xee});
      CHECK(got == expected);
    }
    std::vector<std::byte> none(8);
    CHECK_FALSE(members.receive_at_once(1, 0, 5, none));
  }
}

TEST_CASE("messages that pass at once and others of all sizes are one sequence") {
  for (bool const sends_at_once : {false, true})
    for (bool const receives_at_once : {false, true}) {
      CAPTURE(sends_at_once);
      CAPTURE(receives_at_once);
      Linked members;
      std::vector<MessageMembers::Ended> ended;
      std::vector<std::vector<std::byte>> got;
      for (unsigned i = 0; i < 300; ++i) {
        auto const content = pattern(i % 5 == 0 ? 5000 + i : i, i);
        if (!(sends_at_once && i % 3 != 0 && members.send_at_once(0, 1, 5, content)))
          ended.push_back(members.send(0, 1, 5, content));
        if (i % 4 == 3) members.fleet.let_move();
        auto& to = got.emplace_back(content.size());
        if (!(receives_at_once && i % 2 == 0 && members.receive_at_once(1, 0, 5, to)))
          ended.push_back(members.receive(1, 0, 5, to));
        if (i % 7 == 0) members.fleet.let_move();
      }
      members.fleet.let_move();
      for (auto const& each : ended) REQUIRE(is_well(each));
      for (unsigned i = 0; i < 300; ++i) REQUIRE(got[i] == pattern(got[i].size(), i));
    }
}

TEST_CASE("a message that another receive should get, or that does not fit, stays for the ordinary way") {
  struct Wanted {
    std::string what;
    plan::Rank source;
    std::uint32_t tag;
    std::size_t bytes;
  };
  for (auto const& wanted :
       {Wanted{"another tag", 0, 6, 8}, Wanted{"a smaller one", 0, 5, 7}, Wanted{"any source", any_source, 5, 8},
        Wanted{"another source", 2, 5, 8}, Wanted{"from itself", 1, 5, 8}}) {
    CAPTURE(wanted.what);
    Linked members(3);
    REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 1)));
    std::vector<std::byte> got(8, std::byte{0xee});
    CHECK_FALSE(members.receive_at_once(1, wanted.source, wanted.tag, std::span(got).first(wanted.bytes)));
    CHECK(got == std::vector<std::byte>(8, std::byte{0xee}));
    CHECK(members.receive_at_once(1, 0, 5, got));
    CHECK(got == pattern(8, 1));
  }
}

TEST_CASE("no receive takes a message past a receive that waits, or past a message that has arrived before") {
  Linked members;
  std::vector<std::byte> first(8), second(8);
  auto const waits = members.receive(1, 0, 5, first);
  REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 1)));
  CHECK_FALSE(members.receive_at_once(1, 0, 5, second));
  members.fleet.let_move();
  REQUIRE(is_well(waits));
  CHECK(first == pattern(8, 1));

  REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 2)));
  members.fleet.let_move();
  REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 3)));
  CHECK_FALSE(members.receive_at_once(1, 0, 5, second));
  CHECK(is_well(members.receive(1, 0, 5, first)));
  CHECK(members.receive_at_once(1, 0, 5, second));
  CHECK(first == pattern(8, 2));
  CHECK(second == pattern(8, 3));
}

TEST_CASE("a large message is not overtaken by a small one that stands in the ring") {
  Linked members;
  std::vector<std::byte> large(5000), small(8);
  auto const send = members.send(0, 1, 5, pattern(5000, 1));
  REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 2)));
  CHECK_FALSE(members.receive_at_once(1, 0, 5, small));
  auto const receive = members.receive(1, 0, 5, large);
  members.fleet.let_move();
  REQUIRE(is_well(receive));
  REQUIRE(is_well(send));
  CHECK(is_well(members.receive(1, 0, 5, small)));
  CHECK(large == pattern(5000, 1));
  CHECK(small == pattern(8, 2));
}

TEST_CASE("messages pass at once from the first call of the group until its end, and while there is a link") {
  Linked members(3);
  MessageMembers::Bytes got(8);
  members.close(1);
  CHECK_FALSE(members.send_at_once(1, 0, 5, pattern(8, 1)));
  CHECK(members.send_at_once(0, 1, 5, pattern(8, 1)));
  CHECK_FALSE(members.receive_at_once(1, 0, 5, got));

  CHECK(members.send_at_once(0, 2, 5, pattern(8, 1)));
  members.fleet.kill(2);
  members.fleet.let_move();
  CHECK_FALSE(members.send_at_once(0, 2, 5, pattern(8, 1)));

  MessageMembers unlinked(sharing(2));
  CHECK_FALSE(unlinked.send_at_once(0, 1, 5, pattern(8, 1)));
  CHECK_FALSE(unlinked.receive_at_once(1, 0, 5, got));
  auto const receive = unlinked.receive(1, 0, 5, got);
  CHECK_FALSE(unlinked.send_at_once(0, 1, 5, pattern(8, 1)));
  auto const send = unlinked.send(0, 1, 5, pattern(8, 1));
  unlinked.fleet.let_move();
  CHECK(is_well(receive));
  CHECK(is_well(send));
  CHECK(unlinked.send_at_once(0, 1, 5, pattern(8, 2)));
  CHECK(unlinked.receive_at_once(1, 0, 5, got));
  CHECK(got == pattern(8, 2));
}

TEST_CASE("a fenced peer gets no message at once") {
  Linked members;
  CHECK(members.send_at_once(0, 1, 5, pattern(8, 1)));
  members.fleet.engine(0).fence(members.fleet.peer(1).worker, members.fleet.peer(1).incarnation + 1);
  CHECK_FALSE(members.send_at_once(0, 1, 5, pattern(8, 2)));
}

TEST_CASE("over pipes, which show no frames, messages are received in the ordinary way") {
  Linked members(options_of(2));
  REQUIRE(members.send_at_once(0, 1, 5, pattern(8, 1)));
  MessageMembers::Bytes got(8);
  CHECK_FALSE(members.receive_at_once(1, 0, 5, got));
  auto const receive = members.receive(1, 0, 5, got);
  members.fleet.let_move();
  CHECK(is_well(receive));
  CHECK(got == pattern(8, 1));
}
