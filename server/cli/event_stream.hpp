// Server-sent events out of a stream of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::cli {

struct SentEvent {
  std::uint64_t id = 0;
  std::string type;
  std::string data;
};

// One per connection. What a connection that breaks leaves unfinished is sent again by the next one.
class EventStream {
 public:
  // The events that are complete with these bytes, in order.
  [[nodiscard]] std::vector<SentEvent> feed(std::string_view bytes);

 private:
  void take(std::string_view line);

  std::string line_;
  SentEvent event_;
};

}  // namespace chorus::cli
