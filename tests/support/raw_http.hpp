// A TCP client that says exactly what a test tells it to: for requests that no HTTP library would send.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace chorus::testing {

class RawConnection {
 public:
  // To 127.0.0.1. receive_buffer_bytes: what the system takes before it is read; 0: as much as it likes.
  explicit RawConnection(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawConnection();
  RawConnection(RawConnection const&) = delete;
  RawConnection& operator=(RawConnection const&) = delete;

  void send(std::string_view bytes);  // a peer that has closed is fine
  // Everything until the peer closes, or until the limit.
  std::string read_to_end(std::chrono::milliseconds limit);
  // One answer's head and as much of its body as Content-Length says; "" if the connection closes without an answer.
  std::string read_answer(std::chrono::milliseconds limit);
  [[nodiscard]] bool closed_by_peer() const { return closed_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);
  int socket_ = -1;
  bool closed_ = false;
  std::string buffered_;
};

// 404 of "HTTP/1.1 404 Not Found..."; 0 for anything else.
int status_of(std::string_view answer);

}  // namespace chorus::testing
