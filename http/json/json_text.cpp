#include "http/json/json_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace chorus::http {
namespace {

// Length of the well-formed UTF-8 sequence at the front, 0 if there is none (overlong, surrogate, cut off, too large).
std::size_t utf8_length(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto const follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  auto const first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    auto const low = first == 0xe0 ? 0xa0U : 0x80U, high = first == 0xed ? 0x9fU : 0xbfU;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    auto const low = first == 0xf0 ? 0x90U : 0x80U, high = first == 0xf4 ? 0x8fU : 0xbfU;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// True for characters that need no escape. Nearly all text consists of these, and is copied as a whole.
constexpr auto is_plain = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x20; c < 0x7f; ++c) table[c] = c != '"' && c != '\\';
  return table;
}();

constexpr std::uint64_t in_every_byte(std::uint8_t byte) { return std::uint64_t{0x0101010101010101} * byte; }

// True if none of eight characters needs an escape. Source: "Bit Twiddling Hacks", S. E. Anderson: tests whether a word
// has a byte that is less than n, and one that is zero.
bool are_plain(char const* eight) {
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  auto const has_zero = [](std::uint64_t w) { return (w - in_every_byte(1)) & ~w; };
  auto const is_control = (word - in_every_byte(0x20)) & ~word;
  auto const special =
      has_zero(word ^ in_every_byte('"')) | has_zero(word ^ in_every_byte('\\')) | has_zero(word ^ in_every_byte(0x7f));
  return ((word | is_control | special) & in_every_byte(0x80)) == 0;
}

std::size_t plain_length(std::string_view text) {
  std::size_t length = 0;
  while (text.size() - length >= 8 && are_plain(text.data() + length)) length += 8;
  while (length < text.size() && is_plain[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

}  // namespace

bool is_written_as_it_is(std::string_view text) { return plain_length(text) == text.size(); }

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (;;) {
    auto const plain = plain_length(text);
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    auto const c = static_cast<unsigned char>(text.front());
    auto length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> digits{};
  auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

}  // namespace chorus::http
