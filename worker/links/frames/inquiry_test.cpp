#include "worker/links/frames/inquiry.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "worker/links/frames/errc.hpp"
#include "worker/links/frames/frame.hpp"

using namespace chorus::links;

namespace {

template <class Message>
std::vector<std::byte> encoded(Message const& message) {
  std::vector<std::byte> bytes(tell_bytes_max);
  bytes.resize(encode(message, bytes));
  return bytes;
}

Tell const tell{{.token = 0x0123456789abcdef, .since_us = 2500000, .suspect = 3, .suspicion = Suspicion::silent},
                "rank 2 (w2) has no answer"};

}  // namespace

TEST_CASE("ask and tell are decoded to what was encoded, and have the bytes of docs/reference/wire.md") {
  CHECK(*decode_ask(encoded(Ask{42})) == Ask{42});
  CHECK(*decode_tell(encoded(tell)) == tell);
  auto const bytes = encoded(tell);
  std::vector<std::byte> const head(bytes.begin(), bytes.begin() + 24);
  CHECK(head == std::vector<std::byte>{std::byte{0xef}, std::byte{0xcd}, std::byte{0xab}, std::byte{0x89},
                                       std::byte{0x67}, std::byte{0x45}, std::byte{0x23}, std::byte{0x01},
                                       std::byte{0xa0}, std::byte{0x25}, std::byte{0x26}, std::byte{0x00},
                                       std::byte{0},    std::byte{0},    std::byte{0},    std::byte{0},
                                       std::byte{3},    std::byte{0},    std::byte{0},    std::byte{0},
                                       std::byte{2},    std::byte{3},    std::byte{0},    std::byte{0}});
}

TEST_CASE("a long text is cut, and an unprintable one made printable") {
  auto longer = tell;
  longer.text.assign(1000, 'x');
  CHECK(decode_tell(encoded(longer))->text == std::string(tell_text_max, 'x'));
  longer.text = "a\nb\x1b[2J";
  CHECK(decode_tell(encoded(longer))->text == "a?b?[2J");
}

TEST_CASE("invalid payloads are refused") {
  CHECK(decode_ask(std::vector<std::byte>(7)).error().code == LinkErrc::bad_frame);
  CHECK(decode_ask(std::vector<std::byte>(9)).error().code == LinkErrc::bad_frame);
  CHECK(decode_tell(std::vector<std::byte>(23)).error().code == LinkErrc::bad_frame);
  for (auto const& [at, value] : {std::pair{20, 0}, {20, 4}, {21, 4}, {22, 1}, {23, 1}}) {
    auto bytes = encoded(tell);
    bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    CHECK(decode_tell(bytes).error().code == LinkErrc::bad_frame);
  }
  auto const refused = [](FrameType type, std::uint32_t length) {
    return check({.type = type, .run = 1, .length = length}).has_error();
  };
  CHECK(refused(FrameType::ask, 0));
  CHECK_FALSE(refused(FrameType::ask, 8));
  CHECK(refused(FrameType::tell, 23));
  CHECK_FALSE(refused(FrameType::tell, 24));
  CHECK_FALSE(refused(FrameType::tell, tell_bytes_max));
  CHECK(refused(FrameType::tell, tell_bytes_max + 1));
}
