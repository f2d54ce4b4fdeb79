#include "http/message/trace_context.hpp"

#include <algorithm>
#include <charconv>

namespace chorus::http {
namespace {

constexpr std::size_t trace_id_at = 3, parent_id_at = 36, flags_at = 53, size_of_version_00 = 55;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_identity(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < size_of_version_00) return std::nullopt;
  auto const version = text.substr(0, 2);
  auto const trace_id = text.substr(trace_id_at, 32), parent_id = text.substr(parent_id_at, 16);
  auto const flags = text.substr(flags_at, 2);
  bool const is_00 = version == "00";
  bool const ends =
      is_00 ? text.size() == size_of_version_00 : text.size() == size_of_version_00 || text[size_of_version_00] == '-';
  if (!is_hex(version) || version == "ff" || !ends || !is_identity(trace_id) || !is_identity(parent_id) ||
      !is_hex(flags) || text[2] != '-' || text[parent_id_at - 1] != '-' || text[flags_at - 1] != '-')
    return std::nullopt;
  TraceContext trace{std::string(trace_id), std::string(parent_id), 0};
  std::from_chars(flags.data(), flags.data() + flags.size(), trace.flags, 16);
  return trace;
}

std::string to_traceparent(TraceContext const& trace) {
  constexpr std::string_view digits = "0123456789abcdef";
  return "00-" + trace.trace_id + '-' + trace.parent_id + '-' + digits[trace.flags >> 4] + digits[trace.flags & 15];
}

std::optional<TraceContext> trace_of(Fields const& fields) {
  auto const field = fields.find("traceparent");
  if (!field || fields.count("traceparent") > 1) return std::nullopt;
  return parse_traceparent(*field);
}

TraceContext child_of(TraceContext const& trace, std::uint64_t span) {
  std::string id(16, '0');
  for (auto digit = id.rbegin(); digit != id.rend(); ++digit, span >>= 4) *digit = "0123456789abcdef"[span & 15];
  // Only the flags of version 00 are passed on.
  return {trace.trace_id, std::move(id), static_cast<std::uint8_t>(trace.flags & 1)};
}

}  // namespace chorus::http
