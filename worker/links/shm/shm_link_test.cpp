// Links through shared memory: what they transfer, and what happens to a peer that breaks the rules.
#include "worker/links/shm/shm_link.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "tests/support/mentions.hpp"
#include "worker/links/frames/errc.hpp"
#include "worker/links/testing/shm_pair.hpp"
#include "worker/memory/regions/region_registry.hpp"

using namespace chorus;
using namespace chorus::links;
using namespace chorus::links::testing;
using chorus::testing::mentions;

TEST_CASE("a payload in the arena arrives without a copy, and must stay unchanged until it was read") {
  ShmPair pair;
  auto const bytes = bytes_of(300000, 1);
  auto const block = pair.in_arena(bytes);
  pair.send(header_of(1, block.size()), block);
  CHECK(pair.a.sent.empty());
  auto const used = pair.arena.used_bytes();
  pair.move();
  CHECK(pair.b.arrived == bytes);
  CHECK(pair.a.sent == std::vector<std::uint64_t>{1});
  CHECK(pair.arena.used_bytes() == used);
}

TEST_CASE("a copied frame is reported as sent after the frames before it that are read in place") {
  ShmPair pair;
  auto const bytes = bytes_of(5000, 1), end = bytes_of(100, 2), elsewhere = bytes_of(ShmLink::slot_bytes + 1, 3);
  auto const block = pair.in_arena(bytes);
  pair.send(header_of(1, block.size()), block);
  pair.send(header_of(2, end.size()), end);
  pair.send(header_of(3, elsewhere.size()), elsewhere);
  CHECK(pair.a.sent.empty());
  pair.move();
  CHECK(pair.a.sent == std::vector<std::uint64_t>{1, 2, 3});
  pair.send(header_of(4, end.size()), end);
  CHECK(pair.a.sent.back() == 4);
}

TEST_CASE("a payload outside the arena may change at once, and arrives in parts that fit a slot") {
  ShmPair pair;
  auto bytes = bytes_of(ShmLink::slot_bytes + 1000, 1);
  auto const expected = bytes;
  auto header = header_of(1, bytes.size());
  header.offset = 4096;
  pair.send(header, bytes);
  CHECK(pair.a.sent == std::vector<std::uint64_t>{1});
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  pair.move();
  CHECK(pair.b.arrived == expected);
  REQUIRE(pair.b.headers.size() == 2);
  CHECK(pair.b.headers[0].offset == 4096);
  CHECK(pair.b.headers[0].length == ShmLink::slot_bytes);
  CHECK(pair.b.headers[1].offset == 4096 + ShmLink::slot_bytes);
  CHECK(pair.b.headers[1].length == 1000);
}

TEST_CASE("more frames than slots and ring hold arrive in order") {
  ShmPair pair;
  auto const large = bytes_of(5 * ShmLink::slots * ShmLink::slot_bytes + 24, 3), small = bytes_of(100, 7);
  auto const block = pair.in_arena(bytes_of(5000, 9));
  Bytes expected;
  for (int round = 0; round < 3; ++round)
    for (auto const payload :
         {std::span<std::byte const>(large), std::span<std::byte const>(small), std::span<std::byte const>(block)}) {
      pair.a.to_send.push_back({header_of(1, payload.size()), payload});
      expected.insert(expected.end(), payload.begin(), payload.end());
    }
  for (int i = 0; i < 3000; ++i) pair.a.to_send.push_back({header_of(1, small.size()), small});
  for (int i = 0; i < 3000; ++i) expected.insert(expected.end(), small.begin(), small.end());
  pair.dialer->flush();
  CHECK(pair.a.sent.size() < 3009);
  pair.move();
  CHECK(pair.a.sent.size() == 3009);
  CHECK(pair.b.arrived == expected);
}

TEST_CASE("without room for slots, parts go through the ring") {
  ShmPair pair;
  while (pair.arena.allocate_once(ShmLink::slots * ShmLink::slot_bytes).has_value()) {}
  auto const bytes = bytes_of(100000, 5);
  pair.send(header_of(1, bytes.size()), bytes);
  pair.move();
  CHECK(pair.b.arrived == bytes);
}

TEST_CASE("the accepting side answers through its ring") {
  ShmPair pair;
  auto const bytes = bytes_of(control_bytes_max, 5);
  pair.b.to_send.push_back({header_of(1, bytes.size()), bytes});
  for (int i = 0; i < 1000; ++i) pair.b.to_send.push_back({header_of(2, 0, FrameType::grant), {}});
  pair.acceptor_->flush();
  pair.move();
  CHECK(pair.a.arrived == bytes);
  CHECK(pair.a.headers.size() == 1001);
  CHECK(pair.b.sent.size() == 1001);
}

TEST_CASE("a released run's references are withdrawn before they are read, and other runs go on") {
  ShmPair pair;
  auto const first = pair.in_arena(bytes_of(5000, 1)), second = pair.in_arena(bytes_of(5000, 2));
  pair.send(header_of(1, 5000), first);
  pair.send(header_of(2, 5000), second);
  pair.dialer->release(1);
  std::fill(first.begin(), first.end(), std::byte{0x66});
  pair.move();
  CHECK(pair.b.arrived == bytes_of(5000, 2));
  CHECK(pair.b.withdrawn == 0);
  CHECK(pair.a.sent == std::vector<std::uint64_t>{2});
}

TEST_CASE("a run that is released while its memory is read does not count, and the link goes on") {
  ShmPair pair;
  auto const first = pair.in_arena(bytes_of(5000, 1)), second = pair.in_arena(bytes_of(5000, 2));
  pair.send(header_of(1, 5000), first);
  pair.send(header_of(2, 5000), second);
  pair.b.while_reading = [&] { pair.dialer->release(1); };
  pair.move();
  CHECK(pair.b.withdrawn == 1);
  CHECK(pair.b.arrived == bytes_of(5000, 2));
  CHECK_FALSE(pair.b.closed);
}

TEST_CASE("a link that is closed while its memory is read delivers copied payloads, but no references") {
  ShmPair pair;
  auto const copied = bytes_of(5000, 1);
  auto const block = pair.in_arena(bytes_of(5000, 2));
  pair.send(header_of(1, 5000), copied);
  pair.send(header_of(2, 5000), block);
  pair.dialer->close();
  std::fill(block.begin(), block.end(), std::byte{0x66});
  pair.move();
  CHECK(pair.b.arrived == copied);
  REQUIRE(pair.b.closed);
  CHECK(pair.b.closed->detail == "closed by the peer");
}

TEST_CASE("memory is returned when both ends are closed, whichever is first, and not before") {
  for (bool const dialer_first : {true, false}) {
    CAPTURE(dialer_first);
    ShmPair pair;
    auto const bytes = bytes_of(5000, 1);
    pair.send(header_of(1, bytes.size()), bytes);
    auto const used = pair.arena.used_bytes();
    (dialer_first ? pair.dialer : pair.acceptor_)->close();
    CHECK(pair.arena.used_bytes() == used);
    pair.move();
    CHECK(pair.arena.used_bytes() == 0);
    CHECK(pair.dialer->is_gone());
    CHECK(pair.acceptor_->is_gone());
    CHECK(pair.b.arrived == (dialer_first ? bytes : Bytes()));
  }
}

TEST_CASE("an end that sleeps is woken by the event that it waits for") {
  ShmPair pair;
  auto const block = pair.in_arena(bytes_of(5000, 1));
  auto const sleep = [&](ShmLink& link) {
    link.announce_sleep();
    CHECK_FALSE(link.poll());
  };
  sleep(*pair.acceptor_);
  CHECK(pair.io.poll() == 0);
  pair.send(header_of(1, 5000), block);
  sleep(*pair.dialer);
  CHECK(pair.io.run_one() == 1);  // the acceptor's bell: the acceptor reads, and rings for the dialer
  CHECK(pair.b.arrived.size() == 5000);
  CHECK(pair.a.sent.empty());
  CHECK(pair.io.run_one() == 1);
  CHECK(pair.a.sent.size() == 1);
  pair.send(header_of(2, 5000), block);
  CHECK(pair.io.poll() == 0);  // no end sleeps
}

TEST_CASE("an end that sleeps is woken for an open and its message together") {
  ShmPair pair;
  pair.acceptor_->announce_sleep();
  CHECK_FALSE(pair.acceptor_->poll());
  pair.a.before_sending = [&] { CHECK(pair.io.poll() == 0); };
  auto const both = bytes_of(sizeof(Open) + 4, 1);
  auto const [open, message] = std::pair(std::span(both).first(sizeof(Open)), std::span(both).subspan(sizeof(Open)));
  pair.a.to_send = {{header_of(1, open.size(), FrameType::open), open}, {header_of(1, message.size()), message}};
  pair.dialer->flush();
  CHECK(pair.io.run_one() == 1);
  CHECK(pair.b.headers.size() == 2);
  CHECK(pair.b.arrived == both);
}

TEST_CASE("a small message is in the ring when the call returns, wakes a sleeping end, and is not reported as sent") {
  ShmPair pair;
  pair.acceptor_->announce_sleep();
  CHECK_FALSE(pair.acceptor_->poll());
  auto content = bytes_of(100, 1);
  auto const expected = content;
  MessageFrame const message{header_of(1, sizeof(MessageHead) + 100, FrameType::message), {4, 5}, content};
  REQUIRE(pair.dialer->send_message(message));
  std::fill(content.begin(), content.end(), std::byte{0});
  CHECK(pair.io.run_one() == 1);
  REQUIRE(pair.b.arrived.size() == sizeof(MessageHead) + 100);
  MessageHead head;
  std::memcpy(&head, pair.b.arrived.data(), sizeof head);
  CHECK(head == MessageHead{4, 5});
  CHECK(std::equal(expected.begin(), expected.end(), pair.b.arrived.begin() + sizeof head));
  CHECK(pair.a.sent.empty());
  pair.acceptor_->close();
  CHECK_FALSE(pair.acceptor_->send_message(message));
}

TEST_CASE(
    "small messages fill the ring and then wait for the receiver, as all messages behind a frame that was begun do") {
  ShmPair pair;
  auto const content = bytes_of(message_content_max, 1);
  MessageFrame const message{header_of(1, sizeof(MessageHead) + content.size(), FrameType::message), {4, 5}, content};
  std::size_t taken = 0;
  while (pair.dialer->send_message(message)) ++taken;
  CHECK(taken > 10);
  pair.move();
  CHECK(pair.b.headers.size() == taken);
  CHECK(pair.dialer->send_message(message));
  auto const large = bytes_of(5 * ShmLink::slots * ShmLink::slot_bytes, 3);
  pair.send(header_of(2, large.size()), large);
  CHECK_FALSE(pair.dialer->send_message(message));
  pair.move();
  CHECK(pair.dialer->send_message(message));
}

TEST_CASE("a peer that breaks the rules of the ring loses the link with the reason") {
  struct Bad {
    std::string says;
    std::function<void(ShmPair&)> act;
  };
  constexpr auto most = ~std::uint64_t{0};
  std::vector<Bad> const table{
      {"magic",
       [](ShmPair& p) {
         auto header = header_of(1, 0, FrameType::grant);
         header.magic = 7;
         p.forge().put(header, {});
       }},
      {"flags",
       [](ShmPair& p) {
         auto header = header_of(1, 4);
         header.flags = 1;
         p.forge().put(header, {});
       }},
      {"length of 4294967295", [](ShmPair& p) { p.forge().put(header_of(1, 0xffffffff), {}); }},
      {"beyond what a ring can hold", [](ShmPair& p) { p.forge().put(header_of(1, in_ring_bytes_max + 1), {}); }},
      {"beyond what a ring can hold", [](ShmPair& p) { p.forge().put(header_of(1, 4096), {}); }},
      {"beyond its end", [](ShmPair& p) { p.forge().put_reference(header_of(1, 4096), 16u << 20); }},
      {"beyond its end", [](ShmPair& p) { p.forge().put_reference(header_of(1, 4096), (16u << 20) - 4095); }},
      {"beyond its end", [](ShmPair& p) { p.forge().put_reference(header_of(1, 4096), most); }},
      {"beyond its end", [](ShmPair& p) { p.forge().put_reference(header_of(1, 4096), most - 4000); }},
      {"kind 77", [](ShmPair& p) { p.control->forward_ring[0].words[5] = 77; }},
      {"filler",
       [](ShmPair& p) { p.control->forward_ring[0].words[5] = static_cast<std::uint64_t>(RecordKind::filler); }}};
  for (auto const& [says, act] : table) {
    CAPTURE(says);
    ShmPair pair;
    act(pair);
    pair.move();
    REQUIRE(pair.b.closed);
    CHECK(pair.b.closed->code == LinkErrc::bad_frame);
    CHECK_MESSAGE(mentions(pair.b.closed->detail, says), pair.b.closed->detail);
    CHECK(pair.b.arrived.empty());
    CHECK(pair.a.closed);  // by the end of the connection
  }
}

TEST_CASE("an acceptor that breaks the rules of the ring loses the link with the reason") {
  {
    ShmPair pair;
    RingSender(pair.control->back, pair.control->back_ring).put_reference(header_of(1, 64), 0);
    pair.move();
    REQUIRE(pair.a.closed);
    CHECK(mentions(pair.a.closed->detail, "by reference from the accepting side"));
  }
  {
    ShmPair pair;
    auto const block = pair.in_arena(bytes_of(5000, 1));
    pair.send(header_of(1, 5000), block);
    pair.control->forward.line = 2;
    pair.dialer->poll();
    REQUIRE(pair.a.closed);
    CHECK(pair.a.closed->code == LinkErrc::bad_frame);
    CHECK(pair.a.sent.empty());
  }
}

TEST_CASE("bytes of truncated memory never count, at whatever moment, and the link ends with the reason") {
  enum class Moment { before_it_is_sent, before_it_is_seen, before_it_is_read, after_it_was_read };
  for (auto const moment :
       {Moment::before_it_is_sent, Moment::before_it_is_seen, Moment::before_it_is_read, Moment::after_it_was_read}) {
    for (std::size_t const size : {100, 5000}) {  // in the ring, and by reference
      CAPTURE(static_cast<int>(moment));
      CAPTURE(size);
      ShmPair pair;
      auto const bytes = bytes_of(size, 1);
      auto const block = pair.in_arena(bytes);
      auto const truncate = [&] { REQUIRE(ftruncate(pair.arena.mapping().descriptor(), 4096) == 0); };
      if (moment == Moment::before_it_is_read) pair.b.before_reading = truncate;
      if (moment == Moment::after_it_was_read) pair.b.while_reading = truncate;
      if (moment == Moment::before_it_is_sent) truncate();
      pair.send(header_of(1, size), block);
      if (moment == Moment::before_it_is_seen) truncate();
      pair.move();
      pair.b.before_reading = pair.b.while_reading = [] {};
      pair.send(header_of(2, size), block);  // the dialer notices at the latest when it sends again
      pair.move();
      bool const may_count = moment == Moment::after_it_was_read && pair.b.arrived == bytes;
      CHECK((pair.b.arrived.empty() || may_count));
      REQUIRE((pair.a.closed && pair.b.closed));
      auto const says_so = [](ShmEnd const& worker) {
        return worker.closed->code == LinkErrc::broken &&
               worker.closed->detail == "the shared memory of the link was truncated";
      };
      CHECK((says_so(pair.a) || says_so(pair.b)));
    }
  }
}

TEST_CASE("a wrong offset of the rings is refused") {
  ShmPair pair;
  auto const ticket = pair.arena.ticket();
  auto const refusal = [&](std::uint64_t offset) {
    auto const loan = ShmLoan::take(pair.regions.open(ticket).value(), offset);
    return loan.has_error() && loan.error().code == LinkErrc::bad_handshake ? loan.error().detail : "none";
  };
  CHECK(mentions(refusal(0), "no rings of this kind"));
  CHECK(mentions(refusal(4097), "no rings can be"));
  CHECK(mentions(refusal(ticket.capacity_bytes), "the region ends before the rings"));
  CHECK(mentions(refusal(~std::uint64_t{63}), "the region ends before the rings"));
}

TEST_CASE("a peer's region is mapped once for all its links") {
  ShmPair pair;
  auto const once = pair.regions.open(pair.arena.ticket()).value();
  CHECK(once == pair.regions.open(pair.arena.ticket()).value());
  auto other = pair.arena.ticket();
  other.nonce[0] ^= 1;
  CHECK(pair.regions.open(other).has_error());
}
