#include "http/wire/message_checksum.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/ascii.hpp"
#include "base/crc32c.hpp"

namespace chorus::http {
namespace {

constexpr std::size_t digits = 8;

// The fields that define the meaning of a message. The checksum of the body covers its length.
bool is_covered(std::string_view lower_case_name) {
  constexpr std::array<std::string_view, 5> names{"content-range", "etag", "if-match", "if-none-match", "range"};
  constexpr std::array<std::string_view, 3> beginnings{"chorus-", "parameter-", "tensor-"};
  auto const begins = [&](std::string_view beginning) { return lower_case_name.starts_with(beginning); };
  return std::ranges::find(names, lower_case_name) != names.end() || std::ranges::any_of(beginnings, begins);
}

std::uint32_t add(std::uint32_t crc, std::string_view text) { return crc32c(crc, std::as_bytes(std::span(text))); }

std::string hexadecimal(std::uint32_t number) {
  std::array<char, digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return {text.data(), digits};
}

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  auto const* const end = text.data() + text.size();
  auto const [rest, failure] = std::from_chars(text.data(), end, number, 16);
  if (failure != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

std::uint32_t checksum_of_head(std::string_view first, Fields const& fields, std::uint32_t of_body) {
  std::vector<std::string> lines;  // proxies may change their order
  for (auto const& [name, value] : fields) {
    std::string line(name);
    std::ranges::transform(line, line.begin(), to_lower);
    if (!is_covered(line) || equals_ignoring_case(name, message_checksum_field)) continue;
    line += ": " + value + "\n";
    lines.push_back(std::move(line));
  }
  std::ranges::sort(lines);
  auto crc = add(add(0, first), "\n");
  for (auto const& line : lines) crc = add(crc, line);
  return add(crc, hexadecimal(of_body));
}

MessageChecksum checksum_of(std::string_view first, Fields const& fields, std::span<std::byte const> body) {
  auto const of_body = crc32c(0, body);
  return {of_body, checksum_of_head(first, fields, of_body)};
}

boost::asio::awaitable<MessageChecksum> checksum_in_turns(std::string first, Fields const& fields,
                                                          std::span<std::byte const> body,
                                                          std::span<std::byte const> rest) {
  constexpr std::size_t piece_bytes = 4 << 20;
  std::uint32_t of_body = 0;
  for (;;) {
    auto const piece = body.first(std::min(body.size(), piece_bytes));
    of_body = crc32c(of_body, piece);
    body = body.subspan(piece.size());
    if (body.empty()) body = std::exchange(rest, {});
    if (body.empty()) break;
    co_await boost::asio::post(boost::asio::use_awaitable);
  }
  co_return MessageChecksum{of_body, checksum_of_head(first, fields, of_body)};
}

std::string to_text(MessageChecksum checksum) { return hexadecimal(checksum.body) + "-" + hexadecimal(checksum.head); }

std::optional<MessageChecksum> parse_message_checksum(std::string_view text) {
  if (text.size() != 2 * digits + 1 || text[digits] != '-') return std::nullopt;
  auto const body = number_of(text.substr(0, digits)), head = number_of(text.substr(digits + 1));
  if (!body || !head) return std::nullopt;
  return MessageChecksum{*body, *head};
}

Checked<std::optional<std::uint32_t>> checked_head(Request const& request, bool has_body) {
  auto const field = request.fields.find(message_checksum_field);
  if (!field) return std::optional<std::uint32_t>();
  auto const said = parse_message_checksum(*field);
  if (!said)
    return Problem(ProblemCode::bad_request, "Chorus-Message-Crc32c is not two numbers of 8 hexadecimal digits");
  auto const first = std::string(name(request.method)) + " " + request.target;
  if (checksum_of_head(first, request.fields, said->body) != said->head)
    return Problem(ProblemCode::digest_mismatch,
                   "the head of the request was changed on its way: its CRC32C is another");
  if (!has_body && said->body != 0)
    return Problem(ProblemCode::digest_mismatch, "the body of the request was lost on its way");
  return std::optional(said->body);
}

}  // namespace chorus::http
