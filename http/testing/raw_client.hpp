// A socket and nothing else: sends exactly the bytes that a test names, also those that no client library would send.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace chorus::http::testing {

struct Reply {
  unsigned status = 0;
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;
};

class RawClient {
 public:
  // `receive_buffer_bytes` makes the system's buffer small; 0 leaves it.
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(RawClient const&) = delete;
  RawClient& operator=(RawClient const&) = delete;

  // False if the peer does not take it all, because it has closed.
  bool send(std::string_view text);
  void end_of_sending();
  // One reply by its Content-Length; throws when the connection ends before, or nothing comes for ten seconds.
  [[nodiscard]] Reply reply(bool to_head = false);
  // Everything until the peer closes (also by a reset).
  [[nodiscard]] std::string rest();
  // Whether something (or the end) arrives within that time.
  [[nodiscard]] bool readable_within(std::chrono::milliseconds time) const;

 private:
  bool receive();

  int socket_;
  std::string buffer_;
};

}  // namespace chorus::http::testing
