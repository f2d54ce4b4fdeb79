#include "server/coordinator/events/event_position.hpp"

#include <charconv>

#include "http/api/cluster/membership.hpp"

namespace chorus::coordinator {

std::string to_string(EventPosition const& position) {
  return api::to_hex(position.log) + '-' + std::to_string(position.sequence);
}

std::optional<EventPosition> parse_event_position(std::string_view text) {
  EventPosition position;
  if (auto const dash = text.find('-'); dash != std::string_view::npos) {
    auto const log = api::from_hex(text.substr(0, dash));
    if (!log || *log == 0) return std::nullopt;
    position.log = *log;
    text.remove_prefix(dash + 1);
  }
  auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), position.sequence);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return position;
}

}  // namespace chorus::coordinator
