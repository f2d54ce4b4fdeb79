// Reads the body of a request as one of the messages in http/api.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "http/json/json.hpp"
#include "http/message/message.hpp"

namespace chorus::service {

template <class Message>
struct ReadBody {
  Message message;
  std::string text;
};

// The body outlives the call. Problems: those of Body::read_all and http::decode. `unknown`: see http/json/json.hpp.
template <class Message>
boost::asio::awaitable<http::Checked<ReadBody<Message>>> read_json(
    http::Body& body, http::UnknownFields unknown = http::UnknownFields::refuse) {
  auto text = co_await body.read_all(http::json_limit_bytes);
  if (!text) co_return text.error();
  auto message = http::decode<Message>(*text, unknown);
  if (!message) co_return message.error();
  co_return ReadBody<Message>{std::move(*message), std::move(*text)};
}

}  // namespace chorus::service
