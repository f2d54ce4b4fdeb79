#include "http/message/framing.hpp"

#include <charconv>
#include <limits>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

Problem bad_framing(std::string detail) { return {ProblemCode::bad_request, std::move(detail)}; }

Checked<Framing> framing(Fields const& fields, Framing::Kind otherwise) {
  auto const encodings = fields.count("Transfer-Encoding");
  auto const lengths = fields.count("Content-Length");
  if (encodings > 0 && lengths > 0) return bad_framing("both Content-Length and Transfer-Encoding are present");
  if (encodings > 1) return bad_framing("Transfer-Encoding is repeated");
  if (lengths > 1) return bad_framing("Content-Length is repeated");
  if (encodings == 1) {
    auto const value = *fields.find("Transfer-Encoding");
    if (!equals_ignoring_case(value, "chunked"))
      return bad_framing("Transfer-Encoding is '" + std::string(value) + "', only 'chunked' is understood");
    return Framing{Framing::Kind::chunked, 0};
  }
  if (lengths == 1) {
    auto const value = *fields.find("Content-Length");
    auto const length = parse_content_length(value);
    if (!length) return bad_framing("Content-Length is '" + std::string(value) + "', expected a number of bytes");
    return Framing{*length == 0 ? Framing::Kind::none : Framing::Kind::length, *length};
  }
  return Framing{otherwise, 0};
}

}  // namespace

std::optional<std::uint64_t> parse_content_length(std::string_view text) {
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return value;
}

Checked<Framing> request_framing(Version version, Fields const& fields) {
  if (version == Version::http_1_0 && fields.count("Transfer-Encoding") > 0)
    return bad_framing("Transfer-Encoding does not exist in HTTP/1.0");
  if (version == Version::http_1_1 && fields.count("Host") == 0) return bad_framing("Host is missing");
  if (fields.count("Host") > 1) return bad_framing("Host is repeated");
  return framing(fields, Framing::Kind::none);
}

Checked<Framing> answer_framing(Method method, unsigned status, Fields const& fields) {
  if (method == Method::head || status / 100 == 1 || status == 204 || status == 304) return Framing{};
  return framing(fields, Framing::Kind::until_close);
}

}  // namespace chorus::http
