#include "tests/simulation/machine.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace chorus::simulation {
namespace {

// A global, because the replaced system calls have no argument that could carry it.
Machine* the_present = nullptr;

int system(long result) { return static_cast<int>(result); }

int local_socket() { return system(::syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// A name in the abstract namespace, which leaves no file behind.
socklen_t name_socket(sockaddr_un& address, std::string const& name) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int bind_to(int socket, std::string const& name) {
  sockaddr_un address;
  auto const length = name_socket(address, name);
  return system(::syscall(SYS_bind, socket, &address, length));
}

int connect_to(int socket, std::string const& name) {
  sockaddr_un address;
  auto const length = name_socket(address, name);
  return system(::syscall(SYS_connect, socket, &address, length));
}

void close_end(int& socket) {
  if (socket >= 0) ::close(socket);
  socket = -1;
}

}  // namespace

Machine* Machine::present() { return the_present; }

Machine::Machine(std::uint64_t seed) : random_(seed), prefix_("chorus-simulation-" + std::to_string(::getpid()) + "-") {
  meeting_point_ = local_socket();
  if (meeting_point_ < 0 || bind_to(meeting_point_, prefix_ + "meeting") != 0 || ::listen(meeting_point_, 4096) != 0)
    throw std::runtime_error("no local socket");
  the_present = this;
}

Machine::~Machine() {
  the_present = nullptr;
  for (auto& connection : connections_) close(connection);
  ::close(meeting_point_);
}

Duration Machine::latency() {
  auto const range = static_cast<std::uint64_t>((most_ - least_).count()) + 1;
  return least_ + Duration(static_cast<Duration::rep>(random_() % range));
}

void Machine::delay(Duration least, Duration most) {
  least_ = least;
  most_ = most;
}

void Machine::part(Host& from, Host& to, bool one_sided) {
  parted_.insert({&from, &to});
  if (!one_sided) parted_.insert({&to, &from});
}

void Machine::cut_connections(Host& a, Host& b) {
  for (auto& connection : connections_) {
    auto const& way = connection.there;
    if ((way.from == &a && way.to == &b) || (way.from == &b && way.to == &a)) close(connection);
  }
  a.has_news_ = b.has_news_ = true;
}

void Machine::sever(Host& host) {
  host.is_severed_ = true;
  std::erase_if(listeners_, [&host](auto const& listener) { return listener.second.host == &host; });
  for (auto& connection : connections_) {
    if (connection.there.from != &host && connection.there.to != &host) continue;
    close(connection);
    connection.there.from->has_news_ = connection.there.to->has_news_ = true;
  }
}

int Machine::bind(int socket, std::uint16_t port) {
  if (port == 0) port = next_port_++;
  if (listeners_.contains(port)) {
    errno = EADDRINUSE;
    return -1;
  }
  // Each use of a port has its own name, because the last owner may not have closed its socket yet.
  if (bind_to(socket, prefix_ + std::to_string(port) + "-" + std::to_string(socket)) != 0) return -1;
  sockets_[socket] = {current_, port};
  listeners_[port] = {current_, socket};
  return 0;
}

int Machine::connect(int socket, std::uint16_t port) {
  auto const listener = listeners_.find(port);
  if (listener == listeners_.end() || (current_ != nullptr && current_->is_severed_)) {
    errno = ECONNREFUSED;
    return -1;
  }
  if (connect_to(socket, prefix_ + "meeting") != 0) return -1;
  auto& connection = connections_.emplace_back();
  connection.near = system(::syscall(SYS_accept4, meeting_point_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  connection.port = port;
  connection.there.from = connection.back.to = current_;
  connection.there.to = connection.back.from = listener->second.host;
  // The first piece announces the connection.
  connection.there.pieces.push_back({now_ + latency(), "connect"});
  return 0;
}

int Machine::accept(int socket) {
  auto const accepted = system(::syscall(SYS_accept4, socket, nullptr, nullptr, SOCK_CLOEXEC));
  if (accepted >= 0) sockets_[accepted] = {current_, next_port_};
  return accepted;
}

std::uint16_t Machine::port_of(int socket) const {
  auto const found = sockets_.find(socket);
  return found == sockets_.end() ? 0 : found->second.port;
}

void Machine::closed(int socket) {
  auto const found = sockets_.find(socket);
  if (found == sockets_.end()) return;
  auto const listener = listeners_.find(found->second.port);
  if (listener != listeners_.end() && listener->second.socket == socket) listeners_.erase(listener);
  sockets_.erase(found);
}

void Machine::idle(int timeout_ms) {
  auto const wake = timeout_ms < 0 ? TimePoint::max() : now_ + std::chrono::milliseconds(timeout_ms);
  if (current_->blocking && current_->blocking->is_here()) return current_->blocking->wait(wake);
  current_->wake_ = wake;
  current_->io.stop();
}

void Machine::run_as(Host& host, std::function<void()> const& what) {
  auto* const before = std::exchange(current_, &host);
  what();
  current_ = before;
  host.has_news_ = true;
}

void Machine::run_host(Host& host) {
  host.has_news_ = false;
  host.wake_ = TimePoint::max();
  auto* const before = std::exchange(current_, &host);
  // Either of io_context and blocking thread may have given the other one work.
  for (bool goes_on = true; goes_on;) {
    if (host.blocking) host.blocking->go_on();
    host.io.restart();
    goes_on = host.io.run() > 0 && host.blocking;
  }
  if (host.blocking) host.wake_ = std::min(host.wake_, host.blocking->wake());
  current_ = before;
  collect(host);
}

// Runs the ready hosts in an order that the seed decides. Returns true if a host ran.
bool Machine::run_hosts() {
  std::vector<Host*> ready;
  for (auto* const host : hosts_)
    if (!host->is_stopped_ && (host->has_news_ || host->wake_ <= now_)) ready.push_back(host);
  std::ranges::shuffle(ready, random_);
  for (auto* const host : ready) run_host(*host);
  return !ready.empty();
}

void Machine::collect(Host& host) {
  for (auto& connection : connections_) {
    if (connection.there.from == &host) read(connection.there, connection.near);
    if (connection.there.to == &host) read(connection.back, connection.far);
  }
}

void Machine::read(Way& way, int from) {
  std::array<char, 65536> buffer;
  while (from >= 0 && !way.is_ended) {
    auto const count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    auto const earliest = way.pieces.empty() ? now_ : way.pieces.back().due;
    auto const due = std::max(earliest, now_ + latency());
    way.pieces.push_back({due, count > 0 ? std::string(buffer.data(), static_cast<std::size_t>(count)) : ""});
    way.is_ended = count <= 0;
  }
}

bool Machine::establish(Connection& connection) {
  auto const listener = listeners_.find(connection.port);
  if (listener == listeners_.end() || listener->second.host != connection.there.to) return false;
  connection.far = local_socket();
  auto const name = prefix_ + std::to_string(connection.port) + "-" + std::to_string(listener->second.socket);
  connection.is_established = connection.far >= 0 && connect_to(connection.far, name) == 0;
  return connection.is_established;
}

void Machine::close(Connection& connection) {
  close_end(connection.near);
  close_end(connection.far);
  connection.there.is_ended = connection.back.is_ended = true;
  connection.there.pieces.clear();
  connection.back.pieces.clear();
}

// Returns false if the connection is over.
bool Machine::deliver(Connection& connection, Way& way, int& to, TimePoint& next) {
  while (!way.pieces.empty()) {
    auto& piece = way.pieces.front();
    if (is_parted(way.from, way.to)) return true;
    if (piece.due > now_) {
      next = std::min(next, piece.due);
      return true;
    }
    way.to->has_news_ = true;
    if (&way == &connection.there && !connection.is_established) {
      if (!establish(connection)) return false;
      way.pieces.pop_front();
      continue;
    }
    if (piece.bytes.empty()) {
      ::shutdown(to, SHUT_WR);
      way.pieces.pop_front();
      continue;
    }
    auto const count = ::send(to, piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return false;
    if (count > 0) piece.bytes.erase(0, static_cast<std::size_t>(count));
    if (!piece.bytes.empty()) {  // the receiver does not read
      next = std::min(next, now_ + std::chrono::milliseconds(1));
      return true;
    }
    way.pieces.pop_front();
  }
  return true;
}

void Machine::run(TimePoint end, std::function<bool()> const& done) {
  while (now_ < end && !done()) {
    if (run_hosts()) continue;
    auto next = end;
    if (!plans_.empty()) next = std::min(next, plans_.begin()->first);
    for (auto& connection : connections_) {
      bool const goes_on = deliver(connection, connection.there, connection.far, next) &&
                           deliver(connection, connection.back, connection.near, next);
      if (!goes_on) {
        close(connection);
        connection.there.from->has_news_ = connection.there.to->has_news_ = true;
      }
    }
    forget_closed();
    if (std::ranges::any_of(hosts_, [](auto const* host) { return !host->is_stopped_ && host->has_news_; })) continue;
    for (auto const* const host : hosts_)
      if (!host->is_stopped_) next = std::min(next, host->wake_);
    now_ = std::max(now_, next);
    while (!plans_.empty() && plans_.begin()->first <= now_) {
      auto const what = std::move(plans_.begin()->second);
      plans_.erase(plans_.begin());
      what();
    }
  }
}

void Machine::forget_closed() {
  for (auto& connection : connections_) {
    auto const all_said = [](Way const& way) { return way.is_ended && way.pieces.empty(); };
    if (all_said(connection.there) && all_said(connection.back)) close(connection);
  }
  std::erase_if(connections_, [](auto const& connection) { return connection.near < 0 && connection.far < 0; });
}

}  // namespace chorus::simulation
