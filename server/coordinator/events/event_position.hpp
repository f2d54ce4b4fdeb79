// Position of a reader in an event log: the log's id and the number of the last event that the reader has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chorus::coordinator {

// A coordinator with a journal continues its log; one without begins another log at every start.
struct EventPosition {
  std::uint64_t log = 0;  // 0: the reader sent only a number, which is taken as one of the present log
  std::uint64_t sequence = 0;
};

// Returns text like "9c1f0a52b7d3e864-17".
[[nodiscard]] std::string to_string(EventPosition const& position);

// Parses this text, or a number alone.
[[nodiscard]] std::optional<EventPosition> parse_event_position(std::string_view text);

}  // namespace chorus::coordinator
