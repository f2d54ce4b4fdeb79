// Request targets and URLs: nothing that ends a line or a name gets through, and what is written out is read back.
#include "http/message/target.hpp"

#include "http/client/client.hpp"
#include "tests/fuzz/input.hpp"

using namespace chorus::http;

namespace {

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Every byte as %xx, except the slash.
std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (char c : text) {
    auto const value = static_cast<unsigned char>(c);
    if (c == '/')
      out += c;
    else
      out += {'%', digits[value >> 4], digits[value & 15]};
  }
  return out;
}

void check_target(std::string_view text) {
  auto const target = parse_target(text);
  if (!target) {
    CHORUS_ASSERT(!target.error().detail.empty(), "what is refused has a reason");
    return;
  }
  CHORUS_ASSERT(target->path.starts_with('/') && !has_control(target->path), "a path is one, and one line");
  auto again = encoded(target->path);
  char separator = '?';
  for (auto const& [name, value] : target->query) {
    CHORUS_ASSERT(!has_control(name) && !has_control(value), "a query is one line");
    again += separator + encoded(name) + '=' + encoded(value);
    separator = '&';
  }
  auto const parsed = parse_target(again);
  CHORUS_ASSERT(parsed && parsed->path == target->path && parsed->query == target->query, "read back as it was");
}

void check_url(std::string_view text) {
  auto const url = parse_url(text);
  if (url.has_error()) {
    CHORUS_ASSERT(!url.error().detail.empty(), "what is refused has a reason");
    return;
  }
  CHORUS_ASSERT(!url->host.empty() && url->port != 0, "there is somebody to connect to");
  CHORUS_ASSERT(url->path.empty() || url->path.starts_with('/'), "the path begins a request line");
  CHORUS_ASSERT(!has_control(url->host) && !has_control(url->path) && url->path.find(' ') == std::string::npos,
                "nothing ends the request line early");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = chorus::fuzz::Input(data, size).text();
  check_target(text);
  check_url(text);
  return 0;
}
