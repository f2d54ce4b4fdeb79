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

// The body outlives the call. Problems: those of Body::read_all and http::decode. `unknown`: see http/json/json.hpp;
// messages that are read with `ignore` are of other services, and may list many ranks.
template <class Message>
boost::asio::awaitable<http::Checked<ReadBody<Message>>> read_json(
    http::Body& body, http::UnknownFields unknown = http::UnknownFields::refuse) {
  bool const is_of_service = unknown == http::UnknownFields::ignore;
  auto text = co_await body.read_all(is_of_service ? http::json_answer_limit_bytes : http::json_limit_bytes);
  if (!text) co_return text.error();
  auto message = http::decode<Message>(*text, unknown);
  if (!message) co_return message.error();
  co_return ReadBody<Message>{std::move(*message), std::move(*text)};
}

}  // namespace chorus::service
