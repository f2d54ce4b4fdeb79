#include "http/message/range.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

// Numbers above the largest are the largest: a range ends with the content at the latest.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc() ? value : UINT64_MAX;
}

}  // namespace

bool is_in_other_unit(std::string_view field) {
  auto const equals = field.find('=');
  if (equals == std::string_view::npos) return false;
  auto const unit = trimmed(field.substr(0, equals));
  return !unit.empty() && unit.find_first_of(" \t\",;") == std::string_view::npos &&
         !equals_ignoring_case(unit, "bytes");
}

Checked<ByteRange> parse_range(std::string_view field, std::uint64_t length) {
  auto const malformed = [&] {
    return Problem(ProblemCode::bad_request,
                   "Range is '" + std::string(field) + "', expected one of bytes=2-5, bytes=2-, bytes=-4");
  };
  auto const several = [&] {
    return Problem(ProblemCode::range_not_satisfiable,
                   "Range is '" + std::string(field) + "', but only one range is served at a time");
  };
  auto const unsatisfiable = [&] {
    return Problem(ProblemCode::range_not_satisfiable,
                   "Range is '" + std::string(field) + "', but there are " + std::to_string(length) + " bytes");
  };
  auto const equals = field.find('=');
  if (equals == std::string_view::npos || !equals_ignoring_case(trimmed(field.substr(0, equals)), "bytes"))
    return malformed();
  auto const set = trimmed(field.substr(equals + 1));
  if (set.find(',') != std::string_view::npos) return several();
  auto const dash = set.find('-');
  if (dash == std::string_view::npos) return malformed();
  auto const before = set.substr(0, dash), after = set.substr(dash + 1);

  if (before.empty()) {
    auto const count = number(after);
    if (!count) return malformed();
    if (*count == 0 || length == 0) return unsatisfiable();
    auto const taken = std::min(*count, length);
    return ByteRange{length - taken, taken};
  }
  auto const first = number(before);
  auto const last = after.empty() ? std::optional<std::uint64_t>(UINT64_MAX) : number(after);
  if (!first || !last || *last < *first) return malformed();
  if (*first >= length) return unsatisfiable();
  return ByteRange{*first, std::min(*last, length - 1) - *first + 1};
}

std::string content_range(ByteRange range, std::uint64_t length) {
  return "bytes " + std::to_string(range.first) + "-" + std::to_string(range.first + range.length - 1) + "/" +
         std::to_string(length);
}

std::string content_range_of_none(std::uint64_t length) { return "bytes */" + std::to_string(length); }

}  // namespace chorus::http
