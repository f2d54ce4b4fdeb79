// A plain socket: sends exactly the bytes that a test names, also those that no client library would send.
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
  // `receive_buffer_bytes` sets the system's buffer to this size; 0 keeps the default.
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(RawClient const&) = delete;
  RawClient& operator=(RawClient const&) = delete;

  // False if the peer does not take all bytes because it has closed.
  bool send(std::string_view text);
  void end_of_sending();
  // From now on waits for so long before it takes the next 64 KiB, or what there is of them.
  void read_slowly(std::chrono::milliseconds pause) { pause_ = pause; }
  // Reads one reply by its Content-Length; throws if the connection ends before, or no byte comes for ten seconds.
  [[nodiscard]] Reply reply(bool to_head = false);
  // Reads until so many bytes have come. False if the connection ends before.
  [[nodiscard]] bool receive_until(std::size_t bytes);
  // Reads everything until the peer closes or resets the connection.
  [[nodiscard]] std::string rest();
  // True if bytes or the end arrive within that time.
  [[nodiscard]] bool readable_within(std::chrono::milliseconds time) const;

 private:
  bool receive();

  int socket_;
  std::chrono::milliseconds pause_{0};
  std::string buffer_;
};

}  // namespace chorus::http::testing
