// The Range header field, one range of bytes (RFC 9110 section 14). Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/problem.hpp"

namespace chorus::http {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;  // never 0
  friend bool operator==(ByteRange const&, ByteRange const&) = default;
};

// "bytes=2-5", "bytes=2-", "bytes=-4" against a representation of `length` bytes; an end beyond it is cut.
// range_not_satisfiable: nothing of the range exists; answer with Content-Range: content_range_of_none(length).
// bad_request: anything else, also several ranges and other units.
[[nodiscard]] Checked<ByteRange> parse_range(std::string_view field, std::uint64_t length);

[[nodiscard]] std::string content_range(ByteRange range, std::uint64_t length);  // "bytes 2-5/10"
[[nodiscard]] std::string content_range_of_none(std::uint64_t length);           // "bytes */10"

}  // namespace chorus::http
