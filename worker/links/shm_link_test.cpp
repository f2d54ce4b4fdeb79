// Links through shared memory: what passes through them, and what a peer that breaks the rules gets.
#include "worker/links/shm_link.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <deque>
#include <functional>

#include "tests/support/mentions.hpp"
#include "worker/links/errc.hpp"
#include "worker/memory/region_book.hpp"

using namespace chorus;
using namespace chorus::links;
using boost::asio::ip::tcp;
using chorus::testing::mentions;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return bytes;
}

FrameHeader header_of(std::uint64_t run, std::size_t length, FrameType type = FrameType::data) {
  FrameHeader header;
  header.type = type;
  header.run = run;
  header.length = static_cast<std::uint32_t>(length);
  return header;
}

// Sends what it was given, keeps what arrives, and does what the test wants while it reads.
class Worker final : public LinkHandler {
 public:
  struct Frame {
    FrameHeader header;
    std::span<std::byte const> payload;
  };
  std::deque<Frame> to_send;
  std::vector<std::uint64_t> sent;  // runs of frames that the link is done with
  Bytes arrived;
  std::vector<FrameHeader> headers;
  int withdrawn = 0;
  std::function<void()> before_sending = [] {};
  std::function<void()> before_reading = [] {};
  std::function<void()> while_reading = [] {};
  std::optional<Error> closed;

  bool next_frame(OutFrame& frame) override {
    if (to_send.empty()) return false;
    before_sending();
    frame = {to_send.front().header, to_send.front().payload};
    to_send.pop_front();
    return true;
  }
  void frame_sent(FrameHeader const& header) override { sent.push_back(header.run); }
  Status frame_arrives(FrameHeader const& header) override {
    headers.push_back(header);
    return check(header);
  }
  void frame_is_corrupt(Error const&) override { FAIL("shared memory has no checksums"); }
  std::span<std::byte> payload_space() override {
    FAIL("payloads lie in memory");
    return {};
  }
  void payload_at(std::span<std::byte const> payload) override {
    before_reading();
    read_.assign(payload.begin(), payload.end());
    while_reading();
  }
  Status payload_arrived(std::size_t bytes) override {
    CHECK(bytes == read_.size());
    arrived.insert(arrived.end(), read_.begin(), read_.end());
    return ok();
  }
  void payload_withdrawn() override { ++withdrawn; }
  void link_rests() override {}
  void link_closed(Error why) override { closed = std::move(why); }

 private:
  Bytes read_;
};

class Pair {
 public:
  Pair() : arena(memory::SharedRegion::create(memory::random_ticket(16u << 20)).value()) {
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket here(io);
    here.connect(acceptor.local_endpoint());
    auto there = acceptor.accept();
    auto offer = ShmOffer::make(arena).value();
    auto const described = offer.described();
    control = reinterpret_cast<ShmControl*>(offer.control.bytes().data());
    dialer = std::make_shared<ShmLink>(std::move(here), std::move(offer));
    acceptor_ = std::make_shared<ShmLink>(
        std::move(there), ShmLoan::take(regions.open(described.ticket).value(), described.offset).value());
    dialer->start(a);
    acceptor_->start(b);
  }
  ~Pair() {
    dialer->let_go();
    acceptor_->let_go();
  }

  void send(FrameHeader header, std::span<std::byte const> payload) {
    a.to_send.push_back({header, payload});
    dialer->flush();
  }
  [[nodiscard]] std::span<std::byte> in_arena(Bytes const& bytes) {
    auto const block = arena.allocate(bytes.size()).value();
    std::copy(bytes.begin(), bytes.end(), block.begin());
    return block;
  }
  void move() {
    while (dialer->poll() || acceptor_->poll() || io.poll() != 0) {}
  }
  // As a dialer that breaks the rules, with the ring in its own hands.
  RingSender& forge() { return forged.emplace(control->forward, control->forward_ring); }

  boost::asio::io_context io{1};
  memory::Arena arena;
  memory::RegionBook regions;
  Worker a, b;
  ShmControl* control = nullptr;
  std::shared_ptr<ShmLink> dialer, acceptor_;
  std::optional<RingSender> forged;
};

}  // namespace

TEST_CASE("what lies in the arena arrives without a copy, and is the sender's until it was read") {
  Pair pair;
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

TEST_CASE("what is copied behind what is read where it lies is told of after it") {
  Pair pair;
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

TEST_CASE("what lies elsewhere is the sender's again at once, and arrives in parts that fit a slot") {
  Pair pair;
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

TEST_CASE("more than slots and ring hold arrives in order") {
  Pair pair;
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
  Pair pair;
  while (pair.arena.allocate_once(ShmLink::slots * ShmLink::slot_bytes).has_value()) {}
  auto const bytes = bytes_of(100000, 5);
  pair.send(header_of(1, bytes.size()), bytes);
  pair.move();
  CHECK(pair.b.arrived == bytes);
}

TEST_CASE("the accepting side answers through its ring") {
  Pair pair;
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
  Pair pair;
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
  Pair pair;
  auto const first = pair.in_arena(bytes_of(5000, 1)), second = pair.in_arena(bytes_of(5000, 2));
  pair.send(header_of(1, 5000), first);
  pair.send(header_of(2, 5000), second);
  pair.b.while_reading = [&] { pair.dialer->release(1); };
  pair.move();
  CHECK(pair.b.withdrawn == 1);
  CHECK(pair.b.arrived == bytes_of(5000, 2));
  CHECK_FALSE(pair.b.closed);
}

TEST_CASE("a link that is closed while its memory is read gives what was copied, not what was referred to") {
  Pair pair;
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

TEST_CASE("memory is given back once both ends are closed, whichever is first, and not before") {
  for (bool const dialer_first : {true, false}) {
    CAPTURE(dialer_first);
    Pair pair;
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

TEST_CASE("an end that sleeps is woken by what it waits for") {
  Pair pair;
  auto const block = pair.in_arena(bytes_of(5000, 1));
  auto const sleep = [&](ShmLink& link) {
    link.announce_sleep();
    CHECK_FALSE(link.poll());
  };
  sleep(*pair.acceptor_);
  CHECK(pair.io.poll() == 0);
  pair.send(header_of(1, 5000), block);
  sleep(*pair.dialer);
  CHECK(pair.io.run_one() == 1);  // the acceptor's bell: it reads, and rings for the dialer
  CHECK(pair.b.arrived.size() == 5000);
  CHECK(pair.a.sent.empty());
  CHECK(pair.io.run_one() == 1);
  CHECK(pair.a.sent.size() == 1);
  pair.send(header_of(2, 5000), block);
  CHECK(pair.io.poll() == 0);  // nobody sleeps
}

TEST_CASE("an end that sleeps is woken for an open and its message together") {
  Pair pair;
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

TEST_CASE("a peer that breaks the rules of the ring loses the link with the reason") {
  struct Bad {
    std::string says;
    std::function<void(Pair&)> act;
  };
  constexpr auto most = ~std::uint64_t{0};
  std::vector<Bad> const table{
      {"magic",
       [](Pair& p) {
         auto header = header_of(1, 0, FrameType::grant);
         header.magic = 7;
         p.forge().put(header, {});
       }},
      {"flags",
       [](Pair& p) {
         auto header = header_of(1, 4);
         header.flags = 1;
         p.forge().put(header, {});
       }},
      {"length of 4294967295", [](Pair& p) { p.forge().put(header_of(1, 0xffffffff), {}); }},
      {"beyond what was put into the ring", [](Pair& p) { p.forge().put(header_of(1, 100), {}); }},
      {"beyond what was put into the ring", [](Pair& p) { p.forge().put(header_of(1, 4096), {}); }},
      {"beyond its end", [](Pair& p) { p.forge().put_reference(header_of(1, 4096), 16u << 20); }},
      {"beyond its end", [](Pair& p) { p.forge().put_reference(header_of(1, 4096), (16u << 20) - 4095); }},
      {"beyond its end", [](Pair& p) { p.forge().put_reference(header_of(1, 4096), most); }},
      {"beyond its end", [](Pair& p) { p.forge().put_reference(header_of(1, 4096), most - 4000); }},
      {"kind 0", [](Pair& p) { p.control->forward.head = 1; }},
      {"head is at line", [](Pair& p) { p.control->forward.head = most; }},
      {"filler", [](Pair& p) {
         p.control->forward_ring[0].words[5] = static_cast<std::uint64_t>(RecordKind::filler);
         p.control->forward.head = 1;
       }}};
  for (auto const& [says, act] : table) {
    CAPTURE(says);
    Pair pair;
    act(pair);
    pair.move();
    REQUIRE(pair.b.closed);
    CHECK(pair.b.closed->code == LinkErrc::bad_frame);
    CHECK_MESSAGE(mentions(pair.b.closed->detail, says), pair.b.closed->detail);
    CHECK(pair.b.arrived.empty());
    CHECK(pair.a.closed);  // it sees the end of the connection
  }
}

TEST_CASE("an acceptor that breaks the rules of the ring loses the link with the reason") {
  {
    Pair pair;
    RingSender(pair.control->back, pair.control->back_ring).put_reference(header_of(1, 64), 0);
    pair.move();
    REQUIRE(pair.a.closed);
    CHECK(mentions(pair.a.closed->detail, "by reference from the accepting side"));
  }
  {
    Pair pair;
    auto const block = pair.in_arena(bytes_of(5000, 1));
    pair.send(header_of(1, 5000), block);
    pair.control->forward.tail = 2;
    pair.dialer->poll();
    REQUIRE(pair.a.closed);
    CHECK(pair.a.closed->code == LinkErrc::bad_frame);
    CHECK(pair.a.sent.empty());
  }
}

TEST_CASE("memory that is truncated is never believed, at whatever moment, and the link says so") {
  enum class Moment { before_it_is_sent, before_it_is_seen, before_it_is_read, after_it_was_read };
  for (auto const moment :
       {Moment::before_it_is_sent, Moment::before_it_is_seen, Moment::before_it_is_read, Moment::after_it_was_read}) {
    for (std::size_t const size : {100, 5000}) {  // in the ring, and by reference
      CAPTURE(static_cast<int>(moment));
      CAPTURE(size);
      Pair pair;
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
      auto const says_so = [](Worker const& worker) {
        return worker.closed->code == LinkErrc::broken &&
               worker.closed->detail == "the shared memory of the link was truncated";
      };
      CHECK((says_so(pair.a) || says_so(pair.b)));
    }
  }
}

TEST_CASE("rings that are not where the peer says are refused") {
  Pair pair;
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
  Pair pair;
  auto const once = pair.regions.open(pair.arena.ticket()).value();
  CHECK(once == pair.regions.open(pair.arena.ticket()).value());
  auto other = pair.arena.ticket();
  other.nonce[0] ^= 1;
  CHECK(pair.regions.open(other).has_error());
}
