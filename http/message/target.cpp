#include "http/message/target.hpp"

#include <algorithm>
#include <charconv>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Removes scheme and authority of "http://host:port/path".
std::string_view origin_form(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    auto const slash = target.find_first_of("/?", scheme.size());
    return slash == std::string_view::npos || target[slash] == '?' ? std::string_view() : target.substr(slash);
  }
  return target;
}

}  // namespace

std::string_view raw_path(std::string_view target) {
  auto const form = origin_form(target);
  return form.starts_with('/') ? form.substr(0, form.find('?')) : std::string_view();
}

Checked<std::string> percent_decoded(std::string_view text) {
  auto const is_plain = std::ranges::none_of(text, [](char c) { return c == '%' || is_control(c); });
  if (is_plain) return std::string(text);
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      unsigned char value = 0;
      auto const digits = text.substr(i + 1, 2);
      auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2)
        return Problem(ProblemCode::bad_request, "the request target has a '%' without two hexadecimal digits");
      c = static_cast<char>(value);
      i += 2;
    }
    if (is_control(c)) return Problem(ProblemCode::bad_request, "the request target contains a control character");
    decoded += c;
  }
  return decoded;
}

Checked<Target> parse_target(std::string_view target) {
  auto const path = raw_path(target);
  if (path.empty()) return Problem(ProblemCode::bad_request, "the request target does not begin with '/'");
  Target parsed;
  auto decoded = percent_decoded(path);
  if (!decoded) return decoded.error();
  parsed.path = std::move(*decoded);

  auto query = origin_form(target).substr(path.size());
  if (!query.empty()) query.remove_prefix(1);
  while (!query.empty()) {
    auto const part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (part.empty()) continue;
    auto const key = part.substr(0, part.find('='));
    auto name = percent_decoded(key);
    if (!name) return name.error();
    auto value = percent_decoded(part.substr(std::min(part.size(), key.size() + 1)));
    if (!value) return value.error();
    parsed.query.emplace_back(std::move(*name), std::move(*value));
  }
  return parsed;
}

}  // namespace chorus::http
