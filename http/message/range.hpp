// The Range header field with one range of bytes (RFC 9110 section 14). Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::http {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;  // never 0
  friend bool operator==(ByteRange const&, ByteRange const&) = default;
};

// True if the field uses another unit than bytes. Such a field is ignored (RFC 9110 section 14.2).
[[nodiscard]] bool is_in_other_unit(std::string_view field);

// Parses "bytes=2-5", "bytes=2-" or "bytes=-4" against a representation of `length` bytes; an end beyond it is cut.
// Problems: range_not_satisfiable if nothing of the range exists, or for several ranges (answer with Content-Range:
// content_range_of_none(length)); bad_request for everything else, also other units.
[[nodiscard]] Checked<ByteRange> parse_range(std::string_view field, std::uint64_t length);

[[nodiscard]] std::string content_range(ByteRange range, std::uint64_t length);  // "bytes 2-5/10"
[[nodiscard]] std::string content_range_of_none(std::uint64_t length);           // "bytes */10"

}  // namespace chorus::http
