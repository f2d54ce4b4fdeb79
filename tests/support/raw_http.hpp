// A TCP client that sends exactly the bytes of the test, for requests that no HTTP library would send.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace chorus::testing {

class RawConnection {
 public:
  // Connects to 127.0.0.1. receive_buffer_bytes: what the system accepts before the test reads; 0: the system's
  // default.
  explicit RawConnection(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawConnection();
  RawConnection(RawConnection const&) = delete;
  RawConnection& operator=(RawConnection const&) = delete;

  void send(std::string_view bytes);  // succeeds even if the peer has closed
  // Waits until unread bytes have arrived, without reading them.
  void await_bytes(std::chrono::milliseconds limit) const;
  void reset();  // resets the connection; nothing is read or sent any more
  // Reads until the peer closes, or until the limit.
  std::string read_to_end(std::chrono::milliseconds limit);
  // Reads the header of one answer and as much of its body as Content-Length says. Returns "" if the connection closes
  // without an answer.
  std::string read_answer(std::chrono::milliseconds limit);
  [[nodiscard]] bool closed_by_peer() const { return closed_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);
  int socket_ = -1;
  bool closed_ = false;
  std::string buffered_;
};

// Returns 404 for "HTTP/1.1 404 Not Found..."; 0 for anything else.
int status_of(std::string_view answer);

}  // namespace chorus::testing
