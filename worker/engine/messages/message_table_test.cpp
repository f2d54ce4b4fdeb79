// Which message a receive gets.
#include <doctest/doctest.h>

#include "worker/engine/messages/message_table.hpp"

using namespace chorus::engine;

namespace {

// A message whose run is numbered like its sequence, for three ranks.
MessageTable::Arrival message(chorus::plan::Rank source, std::uint64_t sequence, std::uint32_t tag) {
  return {source, 100 * source + sequence, {.sequence = sequence, .bytes = 8, .tag = tag}};
}

}  // namespace

TEST_CASE("messages of one source and tag are received in the order in which they were sent") {
  MessageTable table(3);
  REQUIRE(table.arrived(message(1, 0, 7)));
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK(table.take(1, 7)->run == 100);
  CHECK(table.take(1, 7)->run == 101);
  CHECK_FALSE(table.take(1, 7));
}

TEST_CASE("a receive passes by messages of other tags and sources") {
  MessageTable table(3);
  REQUIRE(table.arrived(message(1, 0, 7)));
  REQUIRE(table.arrived(message(2, 0, 8)));
  REQUIRE(table.arrived(message(1, 1, 8)));
  CHECK(table.take(1, 8)->run == 101);
  CHECK_FALSE(table.take(2, 7));
  CHECK(table.take(2, 8)->run == 200);
  auto const left = table.take_all();
  REQUIRE(left.size() == 1);
  CHECK(left[0].run == 100);
}

TEST_CASE("a receive from any source gets the message of its tag that arrived first") {
  MessageTable table(3);
  REQUIRE(table.arrived(message(2, 0, 9)));
  REQUIRE(table.arrived(message(1, 0, 7)));
  REQUIRE(table.arrived(message(2, 1, 7)));
  CHECK(table.take(any_source, 7)->source == 1);
  CHECK(table.take(any_source, 7)->source == 2);
}

TEST_CASE("of several receives that fit, a message goes to the one that was posted first") {
  MessageTable table(3);
  table.post(1, 2, 7);
  table.post(2, any_source, 7);
  table.post(3, 1, 7);
  REQUIRE(table.arrived(message(1, 0, 7)));
  CHECK(table.match()->id == 2);
  CHECK_FALSE(table.match());
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK(table.match()->id == 3);
  table.forget(1);
  REQUIRE(table.arrived(message(2, 0, 7)));
  CHECK_FALSE(table.match());
}

TEST_CASE("a message that came ahead of one that was sent before waits for it") {
  MessageTable table(3);
  table.post(1, 1, 7);
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK_FALSE(table.match());
  REQUIRE(table.arrived(message(1, 0, 7)));
  CHECK(table.match()->arrival.run == 100);
  CHECK_FALSE(table.match());
  CHECK(table.take(1, 7)->run == 101);
}

TEST_CASE("a sequence counts once") {
  MessageTable table(3);
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK_FALSE(table.arrived(message(1, 1, 7)));
  REQUIRE(table.arrived(message(1, 0, 7)));
  CHECK_FALSE(table.arrived(message(1, 0, 7)));
  CHECK(table.arrived(message(2, 0, 7)));
}

TEST_CASE("a message that was withdrawn is received by nobody, and those behind it are") {
  MessageTable table(3);
  REQUIRE(table.arrived(message(1, 0, 7)));
  CHECK_FALSE(table.match());
  table.withdraw(100);
  table.post(1, 1, 7);
  CHECK_FALSE(table.match());
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK(table.match()->arrival.run == 101);
}

TEST_CASE("a message meets the receive that waits for it, in its turn") {
  MessageTable table(3);
  table.post(1, 1, 7);
  table.post(2, 1, 8);
  CHECK_FALSE(table.meet(1, message(1, 1, 7).envelope));  // not its turn
  REQUIRE(table.arrived(message(1, 1, 7)));
  CHECK(table.meet(1, message(1, 0, 8).envelope) == 2);
  CHECK(table.match()->arrival.run == 101);
  CHECK_FALSE(table.meet(1, message(1, 2, 8).envelope));  // no receive
  CHECK_FALSE(table.arrived(message(1, 0, 8)));
}

TEST_CASE("the content that waits is counted by its source until it is taken") {
  auto const kept = [](chorus::plan::Rank source, std::uint64_t sequence, std::uint32_t tag) {
    auto arrival = message(source, sequence, tag);
    arrival.run = 0;
    arrival.content.resize(8, static_cast<std::byte>(tag));
    return arrival;
  };
  MessageTable table(3);
  REQUIRE(table.arrived(kept(1, 1, 8)));  // ahead
  REQUIRE(table.arrived(kept(1, 0, 7)));
  REQUIRE(table.arrived(kept(2, 0, 7)));
  REQUIRE(table.arrived(message(1, 2, 7)));
  CHECK(table.kept(1).messages == 2);
  CHECK(table.kept(1).bytes == 16);
  CHECK(table.kept(2).bytes == 8);
  CHECK(table.take(1, 8)->content == std::vector<std::byte>(8, std::byte{8}));
  CHECK(table.kept(1).bytes == 8);
  table.post(1, 1, 7);
  CHECK(table.match()->arrival.content.size() == 8);
  CHECK(table.kept(1).messages == 0);
  CHECK(table.take_all().size() == 2);
  CHECK(table.kept(2).messages == 0);
  CHECK(table.kept(2).bytes == 0);
}

TEST_CASE("the next message of a source is known only while neither receives nor messages wait") {
  MessageTable table(2);
  CHECK(table.next_of(0) == 0);
  table.pass_next(0);
  CHECK(table.next_of(0) == 1);
  CHECK(table.next_of(1) == 0);
  table.post(1, 1, 5);
  CHECK_FALSE(table.next_of(0));
  table.forget(1);
  CHECK(table.arrived(message(0, 2, 5)));
  CHECK_FALSE(table.next_of(0));
  CHECK(table.arrived(message(0, 1, 5)));
  CHECK_FALSE(table.next_of(0));
  CHECK(table.take(0, 5));
  CHECK(table.take(0, 5));
  CHECK(table.next_of(0) == 3);
}
