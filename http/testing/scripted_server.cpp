#include "http/testing/scripted_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace chorus::http::testing {
namespace {

constexpr int patience_ms = 10000;

// True if the request is complete: a close with unread bytes would reset the answer.
bool is_whole(std::string const& text) {
  std::string const field = "\r\nContent-Length: ";
  auto const end = text.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  auto const at = text.find(field);
  std::size_t length = 0;
  if (at < end) std::from_chars(text.data() + at + field.size(), text.data() + end, length);
  return text.size() >= end + 4 + length;
}

// How far to read a request: to the end of its header, or of its body.
enum class Until { header, body };

std::string request_from(int socket, Until until = Until::body) {
  std::string text;
  std::array<char, 65536> bytes;
  while (until == Until::body ? !is_whole(text) : text.find("\r\n\r\n") == std::string::npos) {
    pollfd waiting{socket, POLLIN, 0};
    if (::poll(&waiting, 1, patience_ms) <= 0) return text;
    auto const received = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (received <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(received));
  }
  return text;
}

}  // namespace

ScriptedServer::ScriptedServer(std::vector<Script> connections)
    : connections_(std::move(connections)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr const*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { play(); });
}

ScriptedServer::~ScriptedServer() {
  if (thread_.joinable()) thread_.join();
}

std::string ScriptedServer::url(std::string const& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<std::string> ScriptedServer::requests() {
  thread_.join();
  return requests_;
}

void ScriptedServer::play() {
  for (auto const& script : connections_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (::poll(&waiting, 1, patience_ms) <= 0) break;
    auto const socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    for (auto const& answer : script) {
      auto const is_interim = answer.starts_with("HTTP/1.1 1");  // sent while the body is still arriving
      auto const request = request_from(socket, is_interim ? Until::header : Until::body);
      if (request.empty()) break;
      requests_.push_back(request);
      if (answer == keep_silent)
        request_from(socket);
      else
        ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(socket);
  }
  ::close(listener_);
}

}  // namespace chorus::http::testing
