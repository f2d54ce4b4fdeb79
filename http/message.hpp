// Requests and responses as handlers see them. No Beast in this header: only session.cpp and client.cpp parse HTTP.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/access.hpp"
#include "http/problem.hpp"
#include "http/tls/stream.hpp"

namespace chorus::http {

using TimePoint = std::chrono::steady_clock::time_point;

enum class Method : std::uint8_t { get, head, put, post, delete_, options, other };
[[nodiscard]] std::string_view name(Method method);

// Header fields in order; names compare without case.
class Fields {
 public:
  void set(std::string name, std::string value);  // replaces
  void add(std::string name, std::string value);
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;  // the first of that name
  [[nodiscard]] std::size_t count(std::string_view name) const;
  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  Method method = Method::get;
  std::string target;                                           // as sent
  std::string path;                                             // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;       // percent-decoded
  std::vector<std::pair<std::string, std::string>> parameters;  // what the route's {names} matched
  Fields fields;
  std::string remote;  // "127.0.0.1:49152"
  Caller caller;

  [[nodiscard]] std::string const& parameter(std::string_view name) const;  // asserts that the route has it
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
  // Like query_value, as a number in 0..limit; Problem bad_request names the parameter otherwise.
  [[nodiscard]] Checked<std::optional<std::uint64_t>> query_number(std::string_view name, std::uint64_t limit) const;
};

// The body of the request being handled; valid until the handler returns. What a handler leaves unread is discarded
// (if small) or ends the connection. "100-continue" is answered at the first read.
class Body {
 public:
  virtual ~Body() = default;
  // Nothing for a chunked body.
  [[nodiscard]] virtual std::optional<std::uint64_t> length() const = 0;
  // Reads exactly destination.size() bytes straight into place, or a problem: request_timeout, or bad_request when the
  // body ends early. A failed read leaves the bytes already written; the caller discards the destination.
  virtual boost::asio::awaitable<Checked<std::size_t>> read_exactly(std::span<std::byte> destination) = 0;
  // The whole body as text; payload_too_large above `limit_bytes`.
  virtual boost::asio::awaitable<Checked<std::string>> read_all(std::size_t limit_bytes) = 0;
};

// Bytes that are sent from where they lie; `owner` keeps them alive until they are sent.
struct SharedBytes {
  std::shared_ptr<void const> owner;
  std::span<std::byte const> bytes;
};

// A connection that was HTTP until now. It has a constructor because g++ 12 copies temporaries of aggregates bit by bit
// into the frames of coroutines.
struct Connection {
  Connection(boost::asio::ip::tcp::socket s, std::unique_ptr<TlsStream> t, std::string early)
      : socket(std::move(s)), tls(std::move(t)), early_bytes(std::move(early)) {}

  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<TlsStream> tls;  // null: plain. Speaks on the socket's descriptor, whichever object holds that
  std::string early_bytes;         // what the peer sent after its request or its 101
};

// Takes over the connection after a 101.
using Upgrade = std::function<void(Connection connection)>;

// The next piece of a body that is sent as it comes about, "" at its end. Called again when the piece before has been
// sent: a reader that is slow is one that calls late. It and what it owns are destroyed when the last piece has been
// sent, or the reader has gone or takes nothing for the server's body_stall_timeout.
using Stream = std::function<boost::asio::awaitable<std::string>()>;

// Of an answer to a GET: whether the same request, byte for byte and on the same connection, would be given the same
// header fields now. If so, the payload of now, and it is counted as an answer; nothing: it has to be handled anew. On
// the server's thread, as long as the connection lives: what it refers to outlives the server's stop(), and it keeps no
// payload alive.
using Again = std::function<std::optional<SharedBytes>()>;

struct Response {
  unsigned status = 200;
  Fields fields;
  std::string body;  // used when payload is empty
  SharedBytes payload;
  Stream stream;  // instead of both: chunked, or until the connection closes to a client of HTTP/1.0
  // How long the stream will be, where that is known: its Content-Length. One that ends before ends the connection.
  std::optional<std::uint64_t> stream_length;
  std::optional<std::uint64_t> head_length;  // Content-Length of an answer to HEAD
  Upgrade upgrade;                           // with status 101
  Again again;
  std::optional<Problem> problem;  // what `body` says, if it was made from one; the session fills in the instance

  Response() = default;
  explicit Response(unsigned s) : status(s) {}
  Response(Problem const& problem);  // NOLINT(google-explicit-constructor): handlers co_return problems

  [[nodiscard]] static Response json(unsigned status, std::string body);
  [[nodiscard]] static Response text(unsigned status, std::string body,
                                     std::string content_type = "text/plain; charset=utf-8");
};

}  // namespace chorus::http
