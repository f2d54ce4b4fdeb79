// The asynchronous client that coordinator and workers use between themselves. Keeps connections alive per authority.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "collectives/core/result.hpp"
#include "http/message.hpp"

namespace chorus::http {

struct Url {
  std::string scheme = "http";
  std::string host;
  std::uint16_t port = 80;
  std::string path;  // "" or begins with "/"
};
[[nodiscard]] Result<Url> parse_url(std::string_view text);  // Errors: HttpErrc::bad_url with the text

struct Call {
  Method method = Method::get;
  std::string url;  // absolute
  Fields fields;
  std::string body;  // sent with Content-Length; Content-Type application/json unless set
  std::size_t answer_limit_bytes = 16 << 20;

  // Bytes that are sent instead of `body` from where they lie, and memory that takes the body of an answer with status
  // 2xx instead of Answer::body; a longer one is too_large. Both are left alone once send() has returned.
  std::span<std::byte const> payload;
  std::span<std::byte> destination;
  // For who shows how far it is, on the client's thread; they do not throw. `on_sent`: the payload goes out in pieces
  // of 4 MiB, and this is called after each with what has gone so far; it begins again where the request is sent once
  // more. Nothing more is sent once an answer has come. `on_received`: whenever bytes have arrived in `destination`.
  std::function<void(std::uint64_t sent_bytes)> on_sent;
  std::function<void(std::uint64_t received_bytes)> on_received;
  // A POST that may be sent twice, because who receives it knows it again.
  bool repeatable = false;
};

struct Answer {
  unsigned status = 0;
  Fields fields;
  std::string body;
  std::size_t received_bytes = 0;  // in Call::destination
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
  [[nodiscard]] Problem problem() const;  // of a status that is not ok
};

class Credentials;

// The client outlives its calls: its destructor asserts that none is in flight.
class Client {
 public:
  // credentials: what the services that are called get to see; null for nothing. They outlive the client.
  explicit Client(boost::asio::any_io_executor executor, Credentials const* credentials = nullptr);
  ~Client();
  Client(Client const&) = delete;
  Client& operator=(Client const&) = delete;

  // Errors: HttpErrc connect_failed, local_limit, tls_failed, timed_out (at the deadline), peer_closed, malformed,
  // too_large; the detail names the URL. A request on a kept connection that the peer had closed meanwhile is sent once
  // more on a fresh one, if it is certain that no answer byte came and the method is idempotent. Cancellable: the
  // connection is then closed. On the client's thread; any number at once.
  boost::asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline);

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
