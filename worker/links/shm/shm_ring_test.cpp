// Rings in shared memory, and the bytes of docs/reference/wire_memory.md.
#include "worker/links/shm/shm_ring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::links;
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

struct Ring {
  RingTail tail;
  std::vector<RingLine> lines = std::vector<RingLine>(128);
  RingSender sender{tail, lines};
  RingReceiver receiver{tail, lines};

  [[nodiscard]] std::string refusal() {
    RingReceiver::Record record;
    auto const there = receiver.look(record);
    return there.has_error() ? there.error().detail : "none";
  }
};

}  // namespace

TEST_CASE("frames of any size go through a ring, over its end and around it, in order") {
  // The most frames that wait in the ring.
  for (std::uint64_t const ahead : {1, 5, 100000}) {
    CAPTURE(ahead);
    Ring ring;
    std::uint64_t put = 0, taken = 0;
    auto const size = [](std::uint64_t n) { return n * 37 % (in_ring_bytes_max + 1); };
    while (taken < 2000) {
      while (put - taken < ahead && ring.sender.put(header_of(put, size(put)), bytes_of(size(put), put))) ++put;
      RingReceiver::Record record;
      REQUIRE(ring.receiver.look(record).value());
      CHECK(record.head.frame == header_of(taken, size(taken)));
      auto const expected = bytes_of(size(taken), taken);
      REQUIRE(record.in_ring.size() >= expected.size());
      REQUIRE(std::equal(expected.begin(), expected.end(), record.in_ring.begin()));
      ring.receiver.advance(record.head.kind, record.head.frame.length);
      ++taken;
      CHECK(ring.sender.received().value() == ring.tail.line);
    }
  }
}

TEST_CASE("a message of at most 8 bytes needs one line, and is shown where it lies") {
  Ring ring;
  MessageHead const head{1, 2};
  auto const put = [&](std::size_t bytes) {
    REQUIRE(ring.sender.put(header_of(bytes, sizeof head + bytes, FrameType::message), head, bytes_of(bytes, 7)));
    FrameHeader frame;
    std::span<std::byte const> in_ring;
    auto const before = ring.tail.line.load();
    REQUIRE(ring.receiver.look_in_ring(frame, in_ring));
    CHECK(frame.run == bytes);
    CHECK(std::memcmp(in_ring.data(), &head, sizeof head) == 0);
    auto const* const content = in_ring.data() + sizeof head;
    CHECK(std::ranges::equal(bytes_of(bytes, 7), std::span(content, bytes)));
    ring.receiver.advance(RecordKind::in_ring, frame.length);
    auto const from = content - reinterpret_cast<std::byte const*>(&ring.lines[before]);
    return std::pair(from, ring.tail.line.load() - before);
  };
  CHECK(put(8) == std::pair(std::ptrdiff_t{56}, std::uint64_t{1}));
  CHECK(put(9) == std::pair(std::ptrdiff_t{56}, std::uint64_t{2}));
  CHECK(put(1024) == std::pair(std::ptrdiff_t{56}, std::uint64_t{17}));
}

TEST_CASE("only a frame with its payload in the ring is shown as one") {
  Ring ring;
  FrameHeader frame;
  std::span<std::byte const> in_ring;
  CHECK_FALSE(ring.receiver.look_in_ring(frame, in_ring));
  REQUIRE(ring.sender.put_reference(header_of(1, 8), 64));
  CHECK_FALSE(ring.receiver.look_in_ring(frame, in_ring));
  CHECK_FALSE(ring.receiver.is_empty());
}

TEST_CASE("a full ring takes no more until something is received") {
  Ring ring;
  // The last line stays free.
  for (std::size_t i = 0; i + 1 < ring.lines.size(); ++i)
    REQUIRE(ring.sender.put_reference(header_of(i, 8), 64 * i) == i);
  CHECK_FALSE(ring.sender.put_reference(header_of(0, 8), 0));
  CHECK_FALSE(ring.sender.put(header_of(0, 0), {}));
  RingReceiver::Record record;
  REQUIRE(ring.receiver.look(record).value());
  ring.receiver.advance(record.head.kind, record.head.frame.length);
  CHECK_FALSE(ring.sender.put(header_of(0, 0), {}));
  REQUIRE(ring.sender.received().value() == 1);
  CHECK(ring.sender.put(header_of(0, 0), {}));
}

TEST_CASE("a reference that is withdrawn is no longer valid") {
  Ring ring;
  auto const place = ring.sender.put_reference(header_of(1, 8), 4096);
  RingReceiver::Record record;
  REQUIRE(ring.receiver.look(record).value());
  CHECK(record.head.reference == 4096);
  CHECK(ring.receiver.still_stands());
  ring.sender.withdraw(*place);
  CHECK_FALSE(ring.receiver.still_stands());
  REQUIRE(ring.receiver.look(record).value());
  CHECK(record.head.kind == RecordKind::withdrawn);
}

TEST_CASE("payloads that look like frames are not read as frames, however often the ring goes around") {
  Ring ring;
  std::vector<std::uint64_t> const looks(2 * sizeof(RingLine) / sizeof(std::uint64_t),
                                         static_cast<std::uint64_t>(RecordKind::in_ring));
  auto const payload = std::as_bytes(std::span(looks));
  for (std::uint64_t n = 0; n < 3 * ring.lines.size(); ++n) {
    CHECK(ring.receiver.is_empty());
    REQUIRE(ring.sender.put(header_of(n, payload.size()), payload));
    RingReceiver::Record record;
    REQUIRE(ring.receiver.look(record).value());
    CHECK(record.head.frame.run == n);
    ring.receiver.advance(record.head.kind, record.head.frame.length);
    REQUIRE(ring.sender.received().has_value());
  }
}

TEST_CASE("a sender that found the ring full is told before the ring is empty") {
  for (std::uint64_t before = 0; before < 300; ++before) {
    CAPTURE(before);
    Ring ring;
    RingReceiver::Record record;
    auto const take = [&] {
      REQUIRE(ring.receiver.look(record).value());
      return ring.receiver.advance(record.head.kind, record.head.frame.length);
    };
    for (std::uint64_t n = 0; n < before; ++n) {
      REQUIRE(ring.sender.put(header_of(n, 0), {}));
      take();
      REQUIRE(ring.sender.received().has_value());
    }
    auto const largest = bytes_of(in_ring_bytes_max, 1);
    while (ring.sender.put(header_of(0, largest.size()), largest)) {}
    // Each time that it is told it tries again, as a link does.
    bool fits = false;
    while (!ring.receiver.is_empty() && !fits)
      if (take()) fits = ring.sender.received().has_value() && ring.sender.put(header_of(0, largest.size()), largest);
    CHECK(fits);
  }
}

TEST_CASE("impossible tails and records are refused") {
  {
    Ring ring;
    ring.tail.line = 1;
    CHECK(ring.sender.received().has_error());
  }
  {
    Ring ring;
    CHECK(ring.receiver.is_empty());
    ring.lines[0].words[5] = 77;
    CHECK(mentions(ring.refusal(), "kind 77"));
    ring.lines[0].words[5] = static_cast<std::uint64_t>(RecordKind::filler);
    CHECK(mentions(ring.refusal(), "a filler at the ring's begin"));
  }
  {
    Ring ring;
    REQUIRE(ring.sender.put_reference(header_of(1, 8), 0));
    ring.tail.line = 2;
    CHECK(mentions(ring.sender.received().error().detail, "tail is at line 2"));
  }
}

TEST_CASE("a reference whose padding is not zero is refused and not taken for a withdrawn one") {
  Ring ring;
  REQUIRE(ring.sender.put_reference(header_of(1, 8), 0));
  ring.lines[0].words[5] = std::uint64_t{3} << 32 | static_cast<std::uint64_t>(RecordKind::reference);
  CHECK(mentions(ring.refusal(), "3 where 0 belongs"));
}

TEST_CASE("the worked example of docs/reference/wire_memory.md") {
  Ring ring;
  FrameHeader header;
  header.epoch = 3;
  header.run = 42;
  header.message = 1;
  header.length = 8;
  std::array<float, 2> const values{1, 2};
  REQUIRE(ring.sender.put(header, std::as_bytes(std::span(values))));
  header.length = 65536;
  REQUIRE(ring.sender.put_reference(header, 0x200000) == 1);
  std::array<unsigned char, 64> const first{0x43, 0x4c, 3,    0,    3, 0, 0, 0,   42, 0, 0, 0, 0, 0, 0, 0,  //
                                            1,    0,    0,    0,    8, 0, 0, 0,   0,  0, 0, 0, 0, 0, 0, 0,  //
                                            0,    0,    0,    0,    0, 0, 0, 0,   1,  0, 0, 0, 0, 0, 0, 0,  //
                                            0,    0,    0x80, 0x3f, 0, 0, 0, 0x40};
  std::array<unsigned char, 64> const second{0x43, 0x4c, 3,    0, 3, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0,  //
                                             1,    0,    0,    0, 0, 0, 1, 0, 0,  0, 0, 0, 0, 0, 0, 0,  //
                                             0,    0,    0x20, 0, 0, 0, 0, 0, 2,  0, 0, 0, 0, 0, 0, 0};
  CHECK(std::memcmp(ring.lines[0].words.data(), first.data(), 64) == 0);
  CHECK(std::memcmp(ring.lines[1].words.data(), second.data(), 64) == 0);
}
