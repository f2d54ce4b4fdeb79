// Parses server-sent events from a stream of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chorus::cli {

struct SentEvent {
  std::string id;  // the position after this event, for Last-Event-ID
  std::string type;
  std::string data;
};

// One object per connection. An event that is incomplete when the connection breaks is sent again on the next one.
class EventStream {
 public:
  // Returns the events that these bytes complete, in order.
  [[nodiscard]] std::vector<SentEvent> feed(std::string_view bytes);

 private:
  void take(std::string_view line);

  std::string line_;
  SentEvent event_;
};

}  // namespace chorus::cli
