#include "worker/links/frames/lending.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "worker/links/frames/errc.hpp"
#include "worker/links/frames/frame.hpp"

using namespace chorus::links;

namespace {

std::vector<std::byte> encoded(Borrow const& borrow) {
  std::vector<std::byte> bytes(borrow_bytes_max);
  bytes.resize(encode(borrow, bytes));
  return bytes;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (auto const number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

template <class Struct>
std::vector<std::byte> as_it_lies(Struct const& value) {
  auto const bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

// The header of the examples of docs/reference/wire_memory.md.
FrameHeader of_message_1(FrameType type, std::uint32_t length, std::uint64_t offset) {
  FrameHeader header;
  header.type = type;
  header.epoch = 3;
  header.run = 0x2a;
  header.message = 1;
  header.length = length;
  header.offset = offset;
  return header;
}

}  // namespace

TEST_CASE("a borrow is decoded to what was encoded, with its text cut and printable") {
  Borrow const refused{{Way::refused}, "cuda:1: no peer access"};
  CHECK(*decode_borrow(encoded(refused)) == refused);
  CHECK(decode_borrow(encoded({{Way::in_place}, {}}))->why_not.empty());
  CHECK(decode_borrow(encoded({{Way::in_frames}, std::string(1000, 'x')}))->why_not ==
        std::string(borrow_text_max, 'x'));
  CHECK(decode_borrow(encoded({{Way::refused}, "a\nb"}))->why_not == "a?b");
}

TEST_CASE("an invalid borrow or place is refused") {
  for (auto const way : {0u, 5u, 0x1000001u})
    CHECK(decode_borrow(encoded({{static_cast<Way>(way)}, {}})).error().code == LinkErrc::bad_frame);
  CHECK(decode_borrow(encoded({{Way::in_place, 1}, {}})).has_error());
  for (std::size_t size = 0; size < sizeof(BorrowHead); ++size)
    CHECK(decode_borrow(std::vector<std::byte>(size)).has_error());
  for (std::size_t const size : {0u, 15u, 17u}) CHECK(decode_place(std::vector<std::byte>(size)).has_error());
}

TEST_CASE("lies and read lie on the wire as docs/reference/wire_memory.md shows them") {
  CHECK(as_it_lies(of_message_1(FrameType::lies, sizeof(Place), 0)) ==
        bytes_of({0x43, 0x4c, 9, 0, 3,  0, 0, 0, 0x2a, 0, 0, 0, 0, 0, 0, 0,
                  1,    0,    0, 0, 16, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0}));
  Place const place{2 << 20, 4 << 20};
  CHECK(as_it_lies(place) == bytes_of({0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0}));
  CHECK(*decode_place(as_it_lies(place)) == place);
  CHECK(as_it_lies(of_message_1(FrameType::read, 0, 4 << 20)) ==
        bytes_of({0x43, 0x4c, 10, 0, 3, 0, 0, 0, 0x2a, 0, 0,    0, 0, 0, 0, 0,
                  1,    0,    0,  0, 0, 0, 0, 0, 0,    0, 0x40, 0, 0, 0, 0, 0}));
  CHECK(as_it_lies(BorrowHead{Way::in_place}) == bytes_of({1, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(static_cast<int>(FrameType::borrow) == 8);
  CHECK(static_cast<int>(FrameType::returned) == 11);
}

TEST_CASE("room and wrote lie on the wire as docs/reference/wire_memory.md shows them") {
  CHECK(as_it_lies(of_message_1(FrameType::room, sizeof(Place), 0)) ==
        bytes_of({0x43, 0x4c, 12, 0, 3,  0, 0, 0, 0x2a, 0, 0, 0, 0, 0, 0, 0,
                  1,    0,    0,  0, 16, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0}));
  CHECK(as_it_lies(of_message_1(FrameType::wrote, 0, 4 << 20)) ==
        bytes_of({0x43, 0x4c, 13, 0, 3, 0, 0, 0, 0x2a, 0, 0,    0, 0, 0, 0, 0,
                  1,    0,    0,  0, 0, 0, 0, 0, 0,    0, 0x40, 0, 0, 0, 0, 0}));
  CHECK(as_it_lies(BorrowHead{Way::written}) == bytes_of({4, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_CASE("a GPU's UUID fits, and a longer text is cut") {
  Lend lend;
  set_uuid(lend, "GPU-00000000-0000-0000-0000-000000000000");
  CHECK(uuid_of(lend) == "GPU-00000000-0000-0000-0000-000000000000");
  set_uuid(lend, std::string(100, 'x'));
  CHECK(uuid_of(lend) == std::string(47, 'x'));
  CHECK(lend.writes == 0);
}
