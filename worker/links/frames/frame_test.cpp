#include "worker/links/frames/frame.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "worker/links/frames/errc.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

std::string hex(std::span<std::byte const> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (auto const byte : bytes) {
    if (!text.empty()) text += ' ';
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::string hex(FrameHeader const& header) { return hex(std::as_bytes(std::span(&header, 1))); }

FrameHeader header_of(FrameType type, std::uint32_t length) {
  FrameHeader header;
  header.type = type;
  header.length = length;
  return header;
}

}  // namespace

TEST_CASE("headers lie on the wire as docs/reference/wire.md shows them") {
  FrameHeader grant;
  grant.type = FrameType::grant;
  grant.epoch = 3;
  grant.run = 0x2a;
  grant.message = 1;
  grant.offset = 8;
  CHECK(hex(grant) ==
        "43 4c 02 00 03 00 00 00 2a 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00");
  FrameHeader data;
  data.epoch = 3;
  data.run = 0x2a;
  data.message = 1;
  data.length = 8;
  std::array const payload{1.0f, 2.0f};
  auto const grants = check_of(grant, {});
  auto const datas = check_of(data, std::as_bytes(std::span(payload)));
  CHECK(hex(std::as_bytes(std::span(&grants, 1))) == "00 00 00 00 1c c9 59 fd");
  CHECK(hex(std::as_bytes(std::span(&datas, 1))) == "b1 c9 c0 28 67 cd 6c 4a");
  CHECK(hex(data) == "43 4c 03 00 03 00 00 00 2a 00 00 00 00 00 00 00 01 00 00 00 08 00 00 00 00 00 00 00 00 00 00 00");
}

TEST_CASE("an open carries what both ends must agree on") {
  Open const open{1, 2, 3, 4, 65536, 0, 1};
  OpenBytes bytes;
  auto const size = encode(open, "all_reduce sum f32[4] ring of 2", bytes);
  CHECK(hex(std::span(bytes).first(48)) ==
        "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 "
        "00 00 01 00 00 00 00 00 00 00 00 00 01 00 00 00");
  auto const decoded = decode_open(std::span(bytes).first(size)).value();
  CHECK(decoded.open == open);
  CHECK(decoded.description() == "all_reduce sum f32[4] ring of 2");
  CHECK(encode(open, std::string(1000, 'x'), bytes) == open_bytes_max);
}

TEST_CASE("an open that lends memory has the Lend after its text") {
  Open const open{1, 2, 3, 4, 65536, 0, 1};
  Lend lend{.bytes = 1 << 20, .proof_at = 256};
  set_uuid(lend, "GPU-8e7d");
  OpenBytes bytes;
  auto const used = encode(open, std::string(1000, 'x'), bytes);
  auto const size = append(lend, used, bytes);
  CHECK(size == bytes.size());
  auto const decoded = decode_open(bytes, lends_flag).value();
  CHECK(decoded.open == open);
  CHECK(decoded.description() == std::string(description_bytes_max, 'x'));
  CHECK(decoded.lend == lend);
  for (std::size_t cut = 0; cut < sizeof open + sizeof lend; ++cut)
    CHECK(decode_open(std::span(bytes).first(cut), lends_flag).has_error());
}

TEST_CASE("an open of a message has the envelope after its text") {
  Open const open{1, 2, 3, 4, 65536, 0, 1};
  Envelope const envelope{.sequence = 7, .bytes = 0x0102030405, .tag = 0x11};
  OpenBytes bytes;
  auto const size = append(envelope, encode(open, "message u8[8]", bytes), bytes);
  CHECK(hex(std::span(bytes).subspan(48 + 13, 24)) ==
        "07 00 00 00 00 00 00 00 05 04 03 02 01 00 00 00 11 00 00 00 00 00 00 00");
  auto const decoded = decode_open(std::span(bytes).first(size), message_flag).value();
  CHECK(decoded.open == open);
  CHECK(decoded.description() == "message u8[8]");
  CHECK(decoded.envelope == envelope);
  for (std::size_t cut = 0; cut < sizeof open + sizeof envelope; ++cut)
    CHECK(decode_open(std::span(bytes).first(cut), message_flag).has_error());
  bytes[size - 1] = std::byte{1};
  CHECK(decode_open(std::span(bytes).first(size), message_flag).has_error());
}

TEST_CASE("a small message lies on the wire as docs/reference/wire_messages.md shows it") {
  auto header = header_of(FrameType::message, 12);
  header.epoch = 3;
  header.run = 0x0123456789abcdef;
  header.message = 17;
  header.offset = 8;
  MessageHead const head{0, 1};
  CHECK(hex(header) ==
        "43 4c 0e 00 03 00 00 00 ef cd ab 89 67 45 23 01 11 00 00 00 0c 00 00 00 08 00 00 00 00 00 00 00");
  CHECK(hex(std::as_bytes(std::span(&head, 1))) == "00 00 00 00 01 00 00 00");
}

TEST_CASE("a failure notice carries code, culprits and text, within its limits") {
  FailureNotice const failure_notice{7, FailureNoticeCode::peer_lost, {2, 5}, "lost rank 2"};
  FailureNoticeBytes bytes;
  auto const size = encode(failure_notice, bytes);
  CHECK(decode_failure_notice(std::span(bytes).first(size)).value() == failure_notice);

  FailureNotice const long_one{7, FailureNoticeCode::aborted, std::vector<std::uint32_t>(100, 1),
                               std::string(9999, 'y')};
  CHECK(encode(long_one, bytes) == failure_notice_bytes_max);
  auto const cut = decode_failure_notice(bytes).value();
  CHECK(cut.culprits.size() == culprits_max);
  CHECK(cut.text.size() == text_bytes_max);
}

TEST_CASE("a payload that ends early or counts more than it has is refused") {
  for (std::size_t size = 0; size < sizeof(Open); ++size)
    CHECK(decode_open(std::vector<std::byte>(size)).error().code == LinkErrc::bad_frame);
  FailureNoticeBytes bytes;
  auto const size = encode(FailureNotice{0, FailureNoticeCode::forbidden, {1, 2, 3}, ""}, bytes);
  for (std::size_t short_of = 0; short_of < size; ++short_of)
    CHECK(decode_failure_notice(std::span(bytes).first(short_of)).has_error());
  bytes[10] = std::byte{255};
  CHECK(decode_failure_notice(bytes).has_error());
  bytes[10] = std::byte{0};
  bytes[8] = std::byte{0};
  CHECK(decode_failure_notice(bytes).error().detail == "failure notice code 0");
}

TEST_CASE("text from a peer is made printable") {
  OpenBytes bytes;
  auto const size = encode(Open{}, "a\nb\x1b[31m\xff", bytes);
  CHECK(decode_open(std::span(bytes).first(size)).value().description() == "a?b?[31m?");
}

TEST_CASE("a header is checked by itself") {
  CHECK(check(header_of(FrameType::data, 4)).has_value());
  CHECK(check(header_of(FrameType::grant, 0)).has_value());
  CHECK(check(header_of(FrameType::open, 48)).has_value());
  CHECK(check(header_of(FrameType::abort, 16)).has_value());
  CHECK(check(header_of(FrameType::data, data_bytes_max)).has_value());

  CHECK(check(header_of(FrameType::data, 0)).has_error());
  CHECK(check(header_of(FrameType::data, data_bytes_max + 1)).has_error());
  CHECK(check(header_of(FrameType::grant, 1)).has_error());
  CHECK(check(header_of(FrameType::open, 47)).has_error());
  CHECK(check(header_of(FrameType::open, open_bytes_max + 1)).has_error());
  CHECK(check(header_of(FrameType::refuse, 15)).has_error());
  CHECK(check(header_of(FrameType::abort, failure_notice_bytes_max + 1)).has_error());
  CHECK(check(header_of(static_cast<FrameType>(0), 0)).has_error());
  CHECK(check(header_of(static_cast<FrameType>(6), 0)).has_error());
  auto header = header_of(FrameType::open, 48);
  header.message = 1;
  CHECK(check(header).has_error());
  CHECK(check(header_of(FrameType::lies, 16)).has_value());
  CHECK(check(header_of(FrameType::lies, 15)).has_error());
  CHECK(check(header_of(FrameType::borrow, 7)).has_error());
  CHECK(check(header_of(FrameType::borrow, borrow_bytes_max + 1)).has_error());
  CHECK(check(header_of(FrameType::read, 8)).has_error());
  CHECK(check(header_of(FrameType::returned, 8)).has_error());
  CHECK(check(header_of(static_cast<FrameType>(12), 0)).has_error());
  header = header_of(FrameType::open, 48 + 127);
  header.flags = lends_flag;
  CHECK(check(header).has_error());
  header.length = open_bytes_max + sizeof(Lend);
  CHECK(check(header).has_value());
  header.flags = message_flag;
  CHECK(check(header).has_error());
  header.length = 48 + 23;
  CHECK(check(header).has_error());
  header.length = 48 + 24;
  CHECK(check(header).has_value());
  header.flags = message_flag | lends_flag;
  CHECK(check(header).has_error());
  header = header_of(FrameType::data, 4);
  header.flags = lends_flag;
  CHECK(check(header).has_error());
  header.flags = 128;
  CHECK(check(header).error().detail == "flags 128 in a data");
  header = header_of(FrameType::message, 8);
  header.message = 17;
  header.offset = 7;
  CHECK(check(header).has_value());
  header.length = 8 + message_content_max;
  CHECK(check(header).has_value());
  ++header.length;
  CHECK(check(header).has_error());
  header.length = 7;
  CHECK(check(header).has_error());
  header = {};
  header.magic = 0x4343;
  CHECK(check(header).error().code == LinkErrc::bad_frame);
}
