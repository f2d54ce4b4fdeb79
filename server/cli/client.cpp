#include "server/cli/client.hpp"

#include <httplib.h>

#include "http/client.hpp"
#include "http/errc.hpp"
#include "server/cli/units.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::seconds connect_patience{5};

std::string origin_of(http::Url const& url) {
  auto const ipv6 = url.host.find(':') != std::string::npos && !url.host.starts_with('[');
  return url.scheme + "://" + (ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

std::string reason_of(httplib::Error error, std::chrono::milliseconds patience) {
  switch (error) {
    case httplib::Error::Connection:
      return "nobody listens there";
    case httplib::Error::ConnectionTimeout:
      return "no connection within " + format_seconds(connect_patience.count());
    case httplib::Error::Read:
      return "the connection ended, or was silent for " + format_seconds(static_cast<double>(patience.count()) / 1000);
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLServerVerification:
      return "TLS failed";
    default:
      return httplib::to_string(error);
  }
}

Failure unreachable(std::string const& who, std::string const& origin, std::string const& reason) {
  return {.problem = {http::ProblemCode::unavailable, "cannot reach " + who + " at " + origin + ": " + reason},
          .reachable = false};
}

}  // namespace

Status check_coordinator_url(std::string_view text) {
  auto const url = http::parse_url(text);
  if (!url) return url.error();
  if (url->scheme != "http" && url->scheme != "https")
    return Error(http::HttpErrc::bad_url, "'" + std::string(text) + "' is neither an http nor an https URL");
  return ok();
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (char const c : text) {
    if (plain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      auto const byte = static_cast<unsigned char>(c);
      encoded += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return encoded;
}

Reply<std::string> Client::send(Request const& request) const {
  auto const url = http::parse_url(coordinator_).value();
  auto const origin = origin_of(url);
  httplib::Client connection(origin);
  connection.set_url_encode(false);
  connection.set_connection_timeout(connect_patience);
  connection.set_read_timeout(request.patience);
  connection.set_write_timeout(request.patience);

  httplib::Request question;
  question.method = request.method;
  question.path = (url.path == "/" ? "" : url.path) + request.path;
  question.headers = {{"Accept", "application/json"}};
  if (!request.body.empty()) {
    question.headers.emplace("Content-Type", request.content_type);
    question.body = request.body;
  }
  for (auto const& [name, value] : request.fields) question.headers.emplace(name, value);
  auto const answer = connection.send(question);
  if (!answer) return unreachable(who_, origin, reason_of(answer.error(), request.patience));
  if (answer->status < 200 || answer->status > 299)
    return Failure{http::problem_from_json(answer->body, static_cast<unsigned>(answer->status))};
  return answer->body;
}

std::optional<Failure> Client::follow(Request const& request,
                                      std::function<bool(std::string_view)> const& on_bytes) const {
  auto const url = http::parse_url(coordinator_).value();
  auto const origin = origin_of(url);
  httplib::Client connection(origin);
  connection.set_url_encode(false);
  connection.set_connection_timeout(connect_patience);
  connection.set_read_timeout(request.patience);
  int status = 0;
  std::string refusal;
  bool had_enough = false;
  auto const answer =
      connection.Get((url.path == "/" ? "" : url.path) + request.path, {{"Accept", "text/event-stream"}},
                     [&](httplib::Response const& head) {
                       status = head.status;
                       return true;
                     },
                     [&](char const* data, std::size_t size) {
                       if (status / 100 == 2) {
                         had_enough = !on_bytes({data, size});
                         return !had_enough;
                       }
                       refusal.append(data, size);
                       return true;
                     });
  if (had_enough) return std::nullopt;
  if (!answer) return unreachable(who_, origin, reason_of(answer.error(), request.patience));
  if (status / 100 != 2) return Failure{http::problem_from_json(refusal, static_cast<unsigned>(status))};
  return std::nullopt;
}

Failure Client::not_understood(Request const& request, http::Problem const& why) {
  Failure failure{.problem = why};
  failure.problem.code = http::ProblemCode::internal;
  failure.problem.detail = "the answer to " + request.method + " " + request.path + " is not understood: " + why.detail;
  return failure;
}

}  // namespace chorus::cli
