// The asynchronous client for calls between coordinator and workers. Keeps connections alive per authority.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/message/message.hpp"

namespace chorus::http {

struct Url {
  std::string scheme = "http";
  std::string host;
  std::uint16_t port = 80;
  std::string path;  // "" or begins with "/"
};
[[nodiscard]] Result<Url> parse_url(std::string_view text);  // Errors: HttpErrc::bad_url with the text

// Parses one URL or several separated by commas, each without a path. Errors: HttpErrc::bad_url.
[[nodiscard]] Result<std::vector<std::string>> parse_services(std::string_view text);

// Parses an address or a name to listen on, and removes the brackets around IPv6. Errors: HttpErrc::bad_url.
[[nodiscard]] Result<std::string> parse_listen_host(std::string_view text);

struct Call {
  Method method = Method::get;
  std::string url;  // absolute
  Fields fields;
  std::string body;  // sent with Content-Length; Content-Type application/json unless set
  std::size_t answer_limit_bytes = 16 << 20;

  // `payload`, then `payload_rest`: bytes that are sent instead of `body`, without a copy. `destination`: memory for
  // the body of an answer with status 2xx, instead of Answer::body; a longer body is too_large. The client does not use
  // this memory after send() has returned.
  std::span<std::byte const> payload;
  std::span<std::byte const> payload_rest;
  std::span<std::byte> destination;
  // Callbacks for progress, on the client's thread; they do not throw. `on_sent`: called after each piece of 4 MiB of
  // the payload with the bytes sent so far; starts again when the request is repeated. No piece is sent after an answer
  // has come. `on_received`: called when bytes have arrived in `destination`.
  std::function<void(std::uint64_t sent_bytes)> on_sent;
  std::function<void(std::uint64_t received_bytes)> on_received;
  // True for a POST that may be sent twice because the receiver recognises the repetition.
  bool repeatable = false;
};

// The parts that are sent behind the head, in order.
[[nodiscard]] inline std::array<std::span<std::byte const>, 2> content_of(Call const& call) {
  return {call.payload.empty() ? std::as_bytes(std::span(call.body)) : call.payload, call.payload_rest};
}

struct Answer {
  unsigned status = 0;
  Fields fields;
  std::string body;
  std::size_t received_bytes = 0;  // in Call::destination
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
  [[nodiscard]] Problem problem() const;  // for a status that is not ok
};

class Credentials;

// The client outlives its calls: its destructor asserts that none is in flight.
class Client {
 public:
  // `credentials`: shown to the services that are called; null for none. They outlive the client.
  explicit Client(boost::asio::any_io_executor executor, Credentials const* credentials = nullptr);
  ~Client();
  Client(Client const&) = delete;
  Client& operator=(Client const&) = delete;

  // Errors: HttpErrc connect_failed, no_way, local_limit, tls_failed, timed_out (at the deadline), peer_closed,
  // malformed, too_large; the detail names the URL.
  // If the peer has closed a kept connection in the meantime, the request is sent once more on a new one, provided that
  // no answer byte came and the method is idempotent or the call is repeatable.
  // Cancellation closes the connection. Used on the client's thread; any number of calls at once.
  boost::asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline);

  // Treats the services at these URLs as one, like several coordinators. A request to the first URL goes to the service
  // that answered last. After a failure the next service is asked, at once if nothing was sent; a 307 is followed. A
  // 503 `unavailable` passes the request on to the next service as well: a service without a leader has done nothing;
  // one that cannot write its journal may have begun, so that such requests are idempotent. The URLs are those of
  // parse_services(). Call it before the services are called.
  void take_turns(std::vector<std::string> urls);

  // Connects and performs an HTTP Upgrade.
  struct Upgraded {
    Upgraded(Connection c, Fields f) : connection(std::move(c)), fields(std::move(f)) {}

    Connection connection;
    Fields fields;
  };
  boost::asio::awaitable<Result<Upgraded>> upgrade(std::string url, std::string protocol, Fields fields,
                                                   TimePoint deadline);

  // Closes idle connections; calls in flight end with peer_closed.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::http
