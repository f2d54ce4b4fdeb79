// One connection to a service for one request, and why the request had no answer.
#pragma once

#include <httplib.h>

#include <chrono>
#include <memory>
#include <string>

#include "collectives/core/result.hpp"
#include "http/client/client.hpp"
#include "server/cli/connection/repeats.hpp"
#include "server/cli/connection/session.hpp"

namespace chorus::cli {

// "https://c1:7070"
[[nodiscard]] std::string origin_of(http::Url const& url);

// Makes the connection with the common settings; it follows no redirects. Errors: the mistake in a file of the
// credentials.
[[nodiscard]] Result<std::unique_ptr<httplib::Client>> connect(std::string const& origin,
                                                               Credentials const& credentials,
                                                               std::chrono::milliseconds patience);

// A request without an answer.
struct Unanswered {
  httplib::Error error;
  http::Url const& url;
  std::chrono::milliseconds patience;
  bool was_silent;  // for the patience
  bool shows_certificate;
};

[[nodiscard]] std::string reason_of(Unanswered const& request, httplib::Client const& connection);
[[nodiscard]] bool is_without_connection(httplib::Error error);
[[nodiscard]] Delivery delivery_of(Unanswered const& request);

}  // namespace chorus::cli
