// One client for every server of values: the same loop, the same system calls, and only the bytes of the request
// differ. Chorus is spoken to over HTTP, Redis in its protocol; "raw" is a socket with nothing behind it, served by a
// child, and "added_after" and "added_while" one that adds what is pushed (bare_server.hpp). "passed_whole" and
// "passed_by_owner" pass a half of the rows on to another child (bare_gateway.hpp).
//
//   parameter_traffic chorus|redis|raw|added_after|added_while PORT pull|push|put BYTES CONNECTIONS SECONDS
//   FIRST_SEQUENCE
//   parameter_traffic chorus|passed_whole|passed_by_owner PORT rows ROWS CONNECTIONS SECONDS FIRST_SEQUENCE
//
// Prints {"requests":N,"seconds":S,"median_us":M}. One thread; a connection has one request under way.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bare_gateway.hpp"
#include "bare_server.hpp"

namespace {

using bare::give_up, bare::new_socket, bare::send_all, bare::Work;
using Clock = std::chrono::steady_clock;

int connect_to(std::uint16_t port) {
  auto const handle = new_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) give_up("connect");
  return handle;
}

struct Server {
  std::string kind, what;
  std::size_t bytes;
  std::uint64_t sequence;
  std::size_t rows = 0;

  [[nodiscard]] bool brings() const { return what != "pull"; }
  [[nodiscard]] bool is_bare() const { return kind != "chorus" && kind != "redis"; }
  [[nodiscard]] Work work() const {
    return kind == "added_after" ? Work::added_after : kind == "added_while" ? Work::added_while : Work::none;
  }

  std::string head(int connection) {
    auto const size = std::to_string(bytes);
    if (is_bare()) return brings() ? "p" : "g";
    if (kind == "redis")
      return brings() ? "*3\r\n$3\r\nSET\r\n$1\r\nw\r\n$" + size + "\r\n" : "*2\r\n$3\r\nGET\r\n$1\r\nw\r\n";
    if (!brings()) return "GET /v1/parameters/w/value HTTP/1.1\r\nHost: localhost\r\n\r\n";
    auto const line = what == "put"    ? "PUT /v1/parameters/w/value"
                      : what == "rows" ? "POST /v1/parameters/w/rows/gradient"
                                       : "POST /v1/parameters/w/gradient";
    auto const number_of_rows = what == "rows" ? "Chorus-Rows: " + std::to_string(rows) + "\r\n" : std::string();
    return line + std::string(" HTTP/1.1\r\nHost: localhost\r\nContent-Length: ") + size + "\r\n" + number_of_rows +
           "Chorus-Client: c" + std::to_string(connection) + "\r\nChorus-Sequence: " + std::to_string(sequence++) +
           "\r\n\r\n";
  }
  [[nodiscard]] std::string_view tail() const { return kind == "redis" && brings() ? "\r\n" : ""; }

  // How long the answer is, of which `text` is the beginning; 0: that cannot be told yet.
  [[nodiscard]] std::size_t answer_bytes(std::string_view text) const {
    if (is_bare()) return brings() ? 1 : bytes;
    if (kind == "redis") {
      auto const line = text.find("\r\n");
      if (line == std::string_view::npos) return 0;
      if (text[0] == '-') give_up(std::string(text.substr(0, line)).c_str());
      return brings() ? line + 2 : line + 2 + bytes + 2;
    }
    auto const end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    if (text.substr(9, 3) != "200") give_up(std::string(text).c_str());
    auto const length = text.find("Content-Length: ");
    return end + 4 + std::strtoull(text.data() + length + 16, nullptr, 10);
  }
};

// Reads one answer: its beginning into `memory`, what is large straight behind it.
void receive_answer(int handle, Server const& server, std::vector<char>& memory) {
  std::size_t filled = 0, wanted = 0;
  while (wanted == 0 || filled < wanted) {
    auto const room = wanted == 0 ? memory.size() - filled : wanted - filled;
    auto const part = ::recv(handle, memory.data() + filled, room, 0);
    if (part <= 0) give_up("recv");
    filled += static_cast<std::size_t>(part);
    if (wanted == 0) wanted = server.answer_bytes({memory.data(), std::min<std::size_t>(filled, 4096)});
  }
}

// A gateway behind the listener, which owns a half of the rows, and the owner of the others.
std::vector<pid_t> start_owners(int listener, Server const& server) {
  auto const meeting = new_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(meeting, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::listen(meeting, 1);
  ::getsockname(meeting, reinterpret_cast<sockaddr*>(&address), &size);
  auto const to_owner = connect_to(ntohs(address.sin_port));
  auto const at_owner = ::accept(meeting, nullptr, nullptr);
  if (at_owner < 0) give_up("accept");
  std::vector<pid_t> children{::fork()};
  if (children.back() == 0) {
    ::close(to_owner);
    bare::own_rows(at_owner, server.rows - server.rows / 2);
  }
  children.push_back(::fork());
  if (children.back() == 0)
    bare::pass_rows_on(listener, to_owner, server.rows,
                       server.kind == "passed_whole" ? bare::Passing::whole : bare::Passing::by_owner);
  return children;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  Server server{argv[1], argv[3], std::strtoull(argv[4], nullptr, 10), std::strtoull(argv[7], nullptr, 10)};
  auto port = static_cast<std::uint16_t>(std::strtoul(argv[2], nullptr, 10));
  auto const connections = static_cast<int>(std::strtoul(argv[5], nullptr, 10));
  auto const seconds = std::strtod(argv[6], nullptr);
  if (server.what == "rows") {
    server.rows = server.bytes;
    server.bytes = server.rows * bare::pushed_bytes_each;
  }
  std::vector<pid_t> children;
  if (server.is_bare()) {
    auto const listener = new_socket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener, 16);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    if (server.what == "rows")
      children = start_owners(listener, server);
    else if (children.push_back(::fork()); children.back() == 0)
      bare::serve(listener, server.bytes, server.work());
  }
  // Adding zeros keeps numbers numbers.
  auto const payload =
      server.what == "rows" ? bare::rows_body(server.rows) : std::vector<char>(server.brings() ? server.bytes : 0, 0);
  std::vector<char> memory(server.bytes + 65536);
  std::vector<pollfd> sockets;
  std::vector<Clock::time_point> begun(static_cast<std::size_t>(connections));
  std::vector<double> durations;
  auto const ask = [&](std::size_t i) {
    begun[i] = Clock::now();
    send_all(sockets[i].fd, server.head(static_cast<int>(i)), payload.data(), payload.size());
    if (!server.tail().empty()) send_all(sockets[i].fd, server.tail(), nullptr, 0);
  };
  for (int i = 0; i < connections; ++i) sockets.push_back({connect_to(port), POLLIN, 0});
  auto const from = Clock::now();
  auto const warm = from + std::chrono::duration<double>(seconds / 5);
  auto const until = from + std::chrono::duration<double>(seconds * 1.2);
  for (std::size_t i = 0; i < sockets.size(); ++i) ask(i);
  auto counted_from = from;
  for (std::size_t open = sockets.size(); open > 0;) {
    if (sockets.size() > 1) ::poll(sockets.data(), sockets.size(), 1000);
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].fd < 0 || (sockets.size() > 1 && (sockets[i].revents & POLLIN) == 0)) continue;
      receive_answer(sockets[i].fd, server, memory);
      auto const now = Clock::now();
      if (now < warm)
        counted_from = now;
      else
        durations.push_back(std::chrono::duration<double, std::micro>(now - begun[i]).count());
      if (now < until) {
        ask(i);
      } else {
        ::close(sockets[i].fd);
        sockets[i].fd = -1;
        --open;
      }
    }
  }
  auto const took = std::chrono::duration<double>(Clock::now() - counted_from).count();
  std::nth_element(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2),
                   durations.end());
  std::printf("{\"requests\":%zu,\"seconds\":%.6f,\"median_us\":%.2f,\"sequence\":%llu}\n", durations.size(), took,
              durations[durations.size() / 2], static_cast<unsigned long long>(server.sequence));
  for (auto const child : children) ::kill(child, SIGKILL);
}
