#include "tests/support/raw_http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace chorus::testing {

RawConnection::RawConnection(std::uint16_t port, int receive_buffer_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer_bytes != 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) ::close(socket_);
}

void RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    auto const sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawConnection::reset() {
  linger const at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(std::exchange(socket_, -1));
  closed_ = true;
}

void RawConnection::await_bytes(std::chrono::milliseconds limit) const {
  pollfd readable{socket_, POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(limit.count())) != 1) throw std::runtime_error("nothing comes");
}

bool RawConnection::fill(std::chrono::steady_clock::time_point deadline) {
  auto const left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  pollfd readable{socket_, POLLIN, 0};
  if (closed_ || left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0) return false;
  char chunk[4096];
  auto const got = ::recv(socket_, chunk, sizeof chunk, 0);
  if (got <= 0) {
    closed_ = true;
    return false;
  }
  buffered_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

std::string RawConnection::read_to_end(std::chrono::milliseconds limit) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  while (fill(deadline)) continue;
  return std::exchange(buffered_, {});
}

std::string RawConnection::read_answer(std::chrono::milliseconds limit) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  while (buffered_.find("\r\n\r\n") == std::string::npos)
    if (!fill(deadline)) return std::exchange(buffered_, {});
  auto const head = buffered_.find("\r\n\r\n") + 4;
  auto lower = buffered_.substr(0, head);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::size_t length = 0;
  if (auto const field = lower.find("content-length: "); field != std::string::npos)
    std::from_chars(lower.data() + field + 16, lower.data() + lower.size(), length);
  while (buffered_.size() < head + length)
    if (!fill(deadline)) break;
  auto answer = buffered_.substr(0, head + length);
  buffered_.erase(0, answer.size());
  return answer;
}

int status_of(std::string_view answer) {
  if (!answer.starts_with("HTTP/1.1 ")) return 0;
  int status = 0;
  std::from_chars(answer.data() + 9, answer.data() + std::min<std::size_t>(answer.size(), 12), status);
  return status;
}

}  // namespace chorus::testing
