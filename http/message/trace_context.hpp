// W3C Trace Context: the caller's trace to which a request belongs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/message.hpp"

namespace chorus::http {

struct TraceContext {
  std::string trace_id;   // 32 lower-case hexadecimal digits, not all 0
  std::string parent_id;  // 16 digits, not all 0: the span of the sender of the request
  std::uint8_t flags = 0;

  friend bool operator==(TraceContext const&, TraceContext const&) = default;
};

// Parses the value of the header field. Returns nothing for an invalid value, which the specification wants ignored as
// a whole. Of a version above 00, the parts of version 00 are read.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);
[[nodiscard]] std::string to_traceparent(TraceContext const& trace);

// Returns the trace of a request; nothing if the field is missing or repeated.
[[nodiscard]] std::optional<TraceContext> trace_of(Fields const& fields);

// Returns the trace for a request that another request caused. `span` is a number drawn for it, not 0.
[[nodiscard]] TraceContext child_of(TraceContext const& trace, std::uint64_t span);

}  // namespace chorus::http
