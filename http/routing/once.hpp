// Makes a route take an Idempotency-Key: a repeated request gets the answer of the first and is not carried out again.
#pragma once

#include "http/routing/kept_answers.hpp"
#include "http/routing/router.hpp"

namespace chorus::http {

// Used on the server's thread; outlives the server's stop(). Bodies have at most json_limit_bytes.
class Once {
 public:
  explicit Once(boost::asio::any_io_executor executor) : answers_(std::move(executor), {}) {}

  // A failed request may be repeated under its key. Further problems of the new handler: bad_request for a malformed
  // key, idempotency_reused for another body.
  [[nodiscard]] Handler wrap(Handler handler);

 private:
  boost::asio::awaitable<Response> handle(Handler const& handler, Request const& request, Body& body);

  KeptAnswers<std::string, Response> answers_;
};

}  // namespace chorus::http
