#include "server/cli/connection/event_stream.hpp"

#include <utility>

namespace chorus::cli {
namespace {

bool take_field(std::string_view& line, std::string_view field) {
  if (!line.starts_with(field)) return false;
  line.remove_prefix(field.size());
  return true;
}

}  // namespace

std::vector<SentEvent> EventStream::feed(std::string_view bytes) {
  std::vector<SentEvent> events;
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (!line_.empty())
      take(line_);
    else if (!event_.type.empty())
      events.push_back(std::exchange(event_, {}));
    line_.clear();
  }
  line_ += bytes;
  return events;
}

void EventStream::take(std::string_view line) {
  if (take_field(line, "id: "))
    event_.id = line;
  else if (take_field(line, "event: "))
    event_.type = line;
  else if (take_field(line, "data: "))
    event_.data = line;
}

}  // namespace chorus::cli
