// The listener and its sessions: HTTP/1.1 with keep-alive on one port, hardened beyond what Beast 1.81 checks.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collectives/core/result.hpp"
#include "http/routing/router.hpp"

namespace chorus::http {

struct ServerLimits {
  std::size_t header_bytes = 8192;                 // larger: 431
  std::size_t connections = 16384;                 // more: health is answered, everything else gets 503 and a close
  std::chrono::milliseconds header_timeout{5000};  // from the first byte of a request to its last header byte
  std::chrono::milliseconds idle_timeout{60000};   // between requests
  std::chrono::milliseconds body_stall_timeout{10000};  // longest pause within a body, in either direction
  std::uint64_t body_bytes_per_second_min = 1024;       // averaged over the body, after the stall timeout
  std::uint64_t unread_body_bytes = 65536;  // discarded after the handler; a longer rest closes the connection
};

class Guard;
class TlsContext;

// Access to the server: authentication, TLS, addresses. The objects it points to outlive the server.
struct Door {
  Guard* guard = nullptr;      // null: every caller may do everything
  TlsContext* tls = nullptr;   // null: plain
  bool only_loopback = false;  // listen() refuses every other address
};

// Describes a finished request for metrics and logs; passed to the observer on the server's thread.
struct Exchange {
  Method method;
  std::string_view route;  // pattern, or "" if none matched
  unsigned status;
  std::chrono::steady_clock::duration duration;
};
using Observer = std::function<void(Exchange const&)>;

class Server {
 public:
  // One thread runs the executor. The router outlives stop().
  Server(boost::asio::any_io_executor executor, Router const& router, ServerLimits limits, Observer observer,
         Door door = {});
  ~Server();  // asserts that stop() has completed
  Server(Server const&) = delete;
  Server& operator=(Server const&) = delete;

  // Binds and starts to accept. A name is bound at its IPv4 address if it has one; "::" at all addresses of IPv6 and
  // IPv4, or of IPv4 alone where the system has no IPv6. Port 0 picks a free port.
  // Errors: HttpErrc::bind_failed with address and reason; AuthErrc::not_protected.
  [[nodiscard]] Result<std::uint16_t> listen(std::string const& host, std::uint16_t port);

  // Sets a callback that runs on the server's thread when a connection has ended, with its Request::remote. Call it
  // before listen().
  void on_close(std::function<void(std::string const& remote)> closed);

  // Refuses new connections, cancels the open ones and returns when every session has ended.
  boost::asio::awaitable<void> stop();

  [[nodiscard]] std::size_t open_connections() const;
  // Number of requests that were read but not answered, including streams that are still sent.
  [[nodiscard]] std::size_t requests_in_flight() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::http
