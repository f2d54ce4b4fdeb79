// W3C Trace Context: which trace of the caller's a request belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace chorus::http {

struct TraceContext {
  std::string trace_id;   // 32 lower-case hexadecimal digits, not all 0
  std::string parent_id;  // 16, not all 0: the span of whoever sent the request
  std::uint8_t flags = 0;

  friend bool operator==(TraceContext const&, TraceContext const&) = default;
};

// The value of the header field. Nothing for one that is not valid, which is then ignored as a whole, as the
// specification wants it; of versions above 00 what version 00 knows.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);
[[nodiscard]] std::string to_traceparent(TraceContext const& trace);

// Of a request; nothing without the field, and with more than one of it.
[[nodiscard]] std::optional<TraceContext> trace_of(Fields const& fields);

// For a request that is made because of another one. `span` is a number drawn for it, not 0.
[[nodiscard]] TraceContext child_of(TraceContext const& trace, std::uint64_t span);

}  // namespace chorus::http
