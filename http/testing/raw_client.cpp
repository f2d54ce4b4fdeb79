#include "http/testing/raw_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <system_error>

#include "base/ascii.hpp"

namespace chorus::http::testing {
namespace {

constexpr int patience_with_peer_ms = 10000;

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

[[noreturn]] void fail(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

RawClient::RawClient(std::uint16_t port, int receive_buffer_bytes) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  if (socket_ < 0) fail("socket");
  if (receive_buffer_bytes > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) fail("connect");
}

RawClient::~RawClient() { ::close(socket_); }

bool RawClient::send(std::string_view text) {
  while (!text.empty()) {
    auto const sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::end_of_sending() { ::shutdown(socket_, SHUT_WR); }

bool RawClient::readable_within(std::chrono::milliseconds time) const {
  if (!buffer_.empty()) return true;
  pollfd waiting{socket_, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
}

// False at the end of the connection.
bool RawClient::receive() {
  if (pause_.count() > 0) ::poll(nullptr, 0, static_cast<int>(pause_.count()));
  pollfd waiting{socket_, POLLIN, 0};
  if (::poll(&waiting, 1, patience_with_peer_ms) <= 0) throw std::runtime_error("the peer is silent");
  std::array<char, 65536> bytes;
  auto const received = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (received <= 0) return false;
  buffer_.append(bytes.data(), static_cast<std::size_t>(received));
  return true;
}

Reply RawClient::reply(bool to_head) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
    if (!receive()) throw std::runtime_error("the peer closed before a reply: " + buffer_);
  Reply reply;
  auto head = std::string_view(buffer_).substr(0, end);
  reply.status = static_cast<unsigned>(number(head.substr(head.find(' ') + 1, 3)));
  head.remove_prefix(std::min(head.find("\r\n"), head.size()));
  while (head.starts_with("\r\n")) {
    head.remove_prefix(2);
    auto const line = head.substr(0, head.find("\r\n"));
    std::string name(line.substr(0, line.find(':')));
    std::transform(name.begin(), name.end(), name.begin(), to_lower);
    reply.fields[name] = trimmed(line.substr(line.find(':') + 1));
    head.remove_prefix(line.size());
  }
  buffer_.erase(0, end + 4);
  auto const announced = reply.fields.find("content-length");
  auto const length = to_head || announced == reply.fields.end() ? 0 : number(announced->second);
  while (buffer_.size() < length)
    if (!receive()) throw std::runtime_error("the peer closed within a reply");
  reply.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return reply;
}

bool RawClient::receive_until(std::size_t bytes) {
  while (buffer_.size() < bytes)
    if (!receive()) return false;
  return true;
}

std::string RawClient::rest() {
  while (receive()) {}
  return std::move(buffer_);
}

}  // namespace chorus::http::testing
