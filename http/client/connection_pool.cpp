#include "http/client/connection_pool.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>

namespace chorus::http {
namespace {

// True if the connection has no data and is open. Otherwise the peer has given up this connection.
bool quiet(Wire& wire) {
  char byte = 0;
  auto const received = ::recv(wire.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

std::unique_ptr<Wire> ConnectionPool::take(std::string const& authority) {
  auto const found = idle_.find(authority);
  if (found == idle_.end()) return nullptr;
  auto& stack = found->second;
  std::unique_ptr<Wire> wire;
  auto const oldest = std::chrono::steady_clock::now() - idle_max;
  while (!stack.empty() && !wire) {
    if (stack.back().since >= oldest && quiet(*stack.back().wire)) wire = std::move(stack.back().wire);
    stack.pop_back();
  }
  if (stack.empty()) idle_.erase(found);
  return wire;
}

void ConnectionPool::give_back(std::string const& authority, std::unique_ptr<Wire> wire) {
  if (closed_) return;
  auto const now = std::chrono::steady_clock::now();
  // All authorities are swept: idle connections to unused ones would keep their descriptors for ever.
  if (now >= next_sweep_) {
    next_sweep_ = now + idle_max;
    for (auto entry = idle_.begin(); entry != idle_.end();) {
      std::erase_if(entry->second, [&](Idle const& idle) { return idle.since < now - idle_max; });
      entry = entry->second.empty() ? idle_.erase(entry) : std::next(entry);
    }
  }
  auto& stack = idle_[authority];
  if (stack.size() >= idle_per_authority_max) stack.erase(stack.begin());
  stack.push_back({std::move(wire), now});
}

void ConnectionPool::close() {
  closed_ = true;
  idle_.clear();
  for (auto* wire : in_use_) wire->close();
}

ConnectionPool::InUse::InUse(ConnectionPool& pool, Wire& wire, boost::asio::any_io_executor const& executor,
                             TimePoint deadline)
    : pool_(pool), wire_(wire), timer_(executor, deadline), over_(std::make_shared<bool>(false)) {
  pool_.in_use_.insert(&wire_);
  timer_.async_wait([over = over_, &wire](boost::system::error_code const& error) {
    if (!error && !*over) wire.expire();
  });
}

ConnectionPool::InUse::~InUse() {
  *over_ = true;
  pool_.in_use_.erase(&wire_);
}

}  // namespace chorus::http
