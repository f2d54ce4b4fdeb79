// Reads the header of a request or an answer with Beast's parser. Only session.cpp and client.cpp include this file and
// see Beast.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "http/wire/wire.hpp"

namespace chorus::http {

struct HeaderEnd {
  std::error_code error;  // errors of Wire; too_large above the limit, malformed with the reason
  std::string why;
};

// Reads until the parser has a whole header. The bytes behind it stay in the wire's buffer. Wire and parser outlive the
// call.
//
// The parser limits single lines and the buffered bytes but not their sum, so endless short fields are counted here.
template <class Parser>
boost::asio::awaitable<HeaderEnd> receive_header(Wire& wire, Parser& parser, std::size_t limit_bytes) {
  namespace beast = boost::beast;
  parser.header_limit(static_cast<std::uint32_t>(limit_bytes));
  parser.body_limit(boost::none);
  std::size_t header_bytes = 0;
  for (;;) {
    auto const bytes = wire.buffered();
    beast::error_code error = beast::http::error::need_more;
    if (!bytes.empty()) {
      auto const parsed = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
      wire.consume(parsed);
      header_bytes += parsed;
    }
    if (header_bytes > limit_bytes || error == beast::http::error::header_limit)
      co_return HeaderEnd{HttpErrc::too_large, {}};
    if (parser.is_header_done()) co_return HeaderEnd{};
    if (error && error != beast::http::error::need_more) co_return HeaderEnd{HttpErrc::malformed, error.message()};
    if (auto const more = co_await wire.receive(); more.error) co_return HeaderEnd{more.error, {}};
  }
}

}  // namespace chorus::http
