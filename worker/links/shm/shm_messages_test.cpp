// Small messages of a link through shared memory: what it shows of them, and what it leaves to the ordinary way.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "worker/links/frames/errc.hpp"
#include "worker/links/testing/shm_pair.hpp"

using namespace chorus;
using namespace chorus::links;
using chorus::links::testing::ShmPair;

namespace {

MessageFrame message_of(links::testing::Bytes const& content) {
  return {links::testing::header_of(7, sizeof(MessageHead) + content.size(), FrameType::message), {3, 4}, content};
}

}  // namespace

TEST_CASE("a link shows the message that has arrived next, and moves past it or handles it in the ordinary way") {
  ShmPair pair;
  auto& receiver = *pair.acceptor_;
  MessageFrame shown;
  CHECK(receiver.look_at_message(shown, 3) == Link::Next::nothing);
  for (std::size_t const bytes : {0, 4, 1024, 2040}) {
    auto const a = links::testing::bytes_of(bytes, 1), b = links::testing::bytes_of(bytes, 2);
    REQUIRE(pair.dialer->send_message(message_of(a)));
    REQUIRE(pair.dialer->send_message(message_of(b)));
    REQUIRE(receiver.look_at_message(shown, 0) == Link::Next::message);
    CHECK(shown.header == message_of(a).header);
    CHECK(shown.head == MessageHead{3, 4});
    CHECK(std::ranges::equal(shown.content, a));
    REQUIRE(receiver.pass_message(shown));
    REQUIRE(receiver.look_at_message(shown, 0) == Link::Next::message);
    CHECK(std::ranges::equal(shown.content, b));
    pair.b.arrived.clear();
    pair.move();
    CHECK(std::ranges::equal(std::span(pair.b.arrived).subspan(sizeof(MessageHead)), b));
    CHECK(receiver.look_at_message(shown, 0) == Link::Next::nothing);
  }
  CHECK(pair.b.headers.size() == 4);
}

TEST_CASE("a link shows no frame that is not a whole message in the ring, and handles it as ever") {
  ShmPair pair;
  auto const payload = links::testing::bytes_of(100, 1);
  MessageFrame shown;
  pair.send(links::testing::header_of(1, payload.size()), payload);
  CHECK(pair.acceptor_->look_at_message(shown, 0) == Link::Next::other);
  pair.move();
  CHECK(pair.b.arrived == payload);

  for (std::size_t const length : {std::size_t{7}, in_ring_bytes_max + 1}) {
    CAPTURE(length);
    ShmPair forged;
    auto const header = links::testing::header_of(7, length, FrameType::message);
    REQUIRE(forged.forge().put(header, payload));
    CHECK(forged.acceptor_->look_at_message(shown, 0) == Link::Next::other);
    forged.move();
    CHECK(forged.b.closed);
  }
  ShmPair elsewhere;
  REQUIRE(elsewhere.forge().put_reference(links::testing::header_of(7, 100, FrameType::message), 0));
  CHECK(elsewhere.acceptor_->look_at_message(shown, 0) == Link::Next::other);
}

TEST_CASE("a sender that waits for room is woken when a message is passed") {
  ShmPair pair;
  auto const content = links::testing::bytes_of(2000, 1);
  while (pair.dialer->send_message(message_of(content))) {}
  pair.send(links::testing::header_of(1, content.size()), content);
  REQUIRE(pair.a.sent.empty());
  pair.dialer->announce_sleep();
  MessageFrame shown;
  while (pair.control->dialer_sleeps != 0) {
    REQUIRE(pair.acceptor_->look_at_message(shown, 0) == Link::Next::message);
    REQUIRE(pair.acceptor_->pass_message(shown));
  }
  CHECK(pair.acceptor_->look_at_message(shown, 0) == Link::Next::message);  // the ring is not empty yet
  while (pair.a.sent.empty()) pair.io.run_one();
}

TEST_CASE("a message in truncated memory is not passed, and the link ends with the reason") {
  ShmPair pair;
  auto const content = links::testing::bytes_of(8, 1);
  REQUIRE(pair.dialer->send_message(message_of(content)));
  MessageFrame shown;
  REQUIRE(pair.acceptor_->look_at_message(shown, 0) == Link::Next::message);
  REQUIRE(ftruncate(pair.arena.mapping().descriptor(), 0) == 0);
  CHECK(shown.content[0] == std::byte{0});
  CHECK_FALSE(pair.acceptor_->pass_message(shown));
  static_cast<void>(pair.acceptor_->poll());
  REQUIRE(pair.b.closed);
  CHECK(pair.b.closed->code == LinkErrc::broken);
}
