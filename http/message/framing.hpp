// Determines the length of a message. Two parties that disagree about it can be made to see different requests on one
// connection, so everything ambiguous is refused (RFC 9112 section 6). Pure functions.
#pragma once

#include <cstdint>

#include "http/message/message.hpp"

namespace chorus::http {

struct Framing {
  enum class Kind : std::uint8_t { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;  // of Kind::length
  friend bool operator==(Framing const&, Framing const&) = default;
};

enum class Version : std::uint8_t { http_1_0, http_1_1 };

// Takes digits only: no sign, no list, below 2^63.
[[nodiscard]] std::optional<std::uint64_t> parse_content_length(std::string_view text);

// Problem bad_request: Content-Length with Transfer-Encoding; a Transfer-Encoding other than exactly "chunked",
// repeated, or in HTTP/1.0; a repeated or malformed Content-Length; no Host or several in HTTP/1.1.
[[nodiscard]] Checked<Framing> request_framing(Version version, Fields const& fields);

// Applies the same rules to an answer with this status. An answer without any length lasts until the connection closes.
[[nodiscard]] Checked<Framing> answer_framing(Method method, unsigned status, Fields const& fields);

}  // namespace chorus::http
