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

#include "http/json/problem.hpp"
#include "http/message/access.hpp"
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
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;  // the first field of that name
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
  // Like query_value(), as a number in 0..limit. Problem: bad_request with the name of the parameter.
  [[nodiscard]] Checked<std::optional<std::uint64_t>> query_number(std::string_view name, std::uint64_t limit) const;
};

// The body of the request being handled; valid until the handler returns. What a handler leaves unread is discarded if
// it is small, and ends the connection otherwise. "100-continue" is answered at the first read.
class Body {
 public:
  virtual ~Body() = default;
  // Length of the body; empty for a chunked body.
  [[nodiscard]] virtual std::optional<std::uint64_t> length() const = 0;
  // Reads exactly destination.size() bytes straight into place. Problems: request_timeout; bad_request when the body
  // ends early. A failed read leaves the bytes already written; the caller discards the destination.
  virtual boost::asio::awaitable<Checked<std::size_t>> read_exactly(std::span<std::byte> destination) = 0;
  // Checks that the body has been read to its end. Problems: length_mismatch otherwise, and those of reading.
  virtual boost::asio::awaitable<std::optional<Problem>> expect_end() = 0;
  // Reads the whole body as text. Problem: payload_too_large above `limit_bytes`.
  virtual boost::asio::awaitable<Checked<std::string>> read_all(std::size_t limit_bytes) = 0;
};

// Bytes that are sent from where they lie; `owner` keeps them alive until they are sent.
struct SharedBytes {
  std::shared_ptr<void const> owner;
  std::span<std::byte const> bytes;
};

// A former HTTP connection after its upgrade. It has a constructor because g++ 12 copies temporaries of aggregates bit
// by bit into the frames of coroutines.
struct Connection {
  Connection(boost::asio::ip::tcp::socket s, std::unique_ptr<TlsStream> t, std::string early)
      : socket(std::move(s)), tls(std::move(t)), early_bytes(std::move(early)) {}

  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<TlsStream> tls;  // null: plain. Uses the socket's descriptor, whichever object holds that
  std::string early_bytes;         // bytes that the peer sent after its request or its 101
};

// Takes over the connection after a 101.
using Upgrade = std::function<void(Connection connection)>;

// Returns the next piece of a body that is produced while it is sent, "" at its end. The session calls it again when
// the previous piece has been sent, so a slow reader delays the calls. The session destroys the function after the last
// piece, when the reader has gone, or when the reader takes nothing for the server's body_stall_timeout.
using Stream = std::function<boost::asio::awaitable<std::string>()>;

// Belongs to an answer to a GET. The session calls it when the same request, byte for byte, comes again on the same
// connection. Returns the current payload if a new answer would have the same header fields, and counts it as an
// answer; returns nothing if the request must be handled again.
// Called on the server's thread while the connection lives: what it refers to outlives the server's stop(). It keeps no
// payload alive.
using Again = std::function<std::optional<SharedBytes>()>;

struct Response {
  unsigned status = 200;
  Fields fields;
  std::string body;  // used when payload is empty
  SharedBytes payload;
  Stream stream;  // instead of both: chunked, or until the connection closes to a client of HTTP/1.0
  // Length of the stream if it is known, sent as Content-Length. A stream that ends before ends the connection.
  std::optional<std::uint64_t> stream_length;
  std::optional<std::uint64_t> head_length;  // Content-Length of an answer to HEAD
  Upgrade upgrade;                           // with status 101
  Again again;
  std::optional<Problem> problem;  // the problem from which `body` was made, if any; the session fills in the instance

  Response() = default;
  explicit Response(unsigned s) : status(s) {}
  Response(Problem const& problem);  // NOLINT(google-explicit-constructor): handlers co_return problems

  [[nodiscard]] static Response json(unsigned status, std::string body);
  [[nodiscard]] static Response text(unsigned status, std::string body,
                                     std::string content_type = "text/plain; charset=utf-8");
};

}  // namespace chorus::http
