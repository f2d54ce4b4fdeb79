#include "server/cli/connection/client.hpp"

#include <httplib.h>
#include <netdb.h>

#include <random>
#include <thread>

#include "collectives/core/assert.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/auth/token_file.hpp"
#include "http/client/client.hpp"
#include "http/wire/errc.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::seconds connect_patience{5};

std::string origin_of(http::Url const& url) {
  auto const ipv6 = url.host.find(':') != std::string::npos && !url.host.starts_with('[');
  return url.scheme + "://" + (ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

std::string why_not_verified(httplib::Client const& connection) {
  auto const verdict = connection.get_openssl_verify_result();
  return verdict == X509_V_OK ? "it is for another name" : ::X509_verify_cert_error_string(verdict);
}

// Makes the connection for one request with the common settings. Errors: the mistake in the token's file.
Result<std::unique_ptr<httplib::Client>> connect(std::string const& origin, Credentials const& credentials,
                                                 std::chrono::milliseconds patience, bool follows) {
  auto connection = std::make_unique<httplib::Client>(origin, credentials.tls_certificate, credentials.tls_key);
  connection->set_url_encode(false);
  connection->set_follow_location(follows);
  connection->set_connection_timeout(connect_patience);
  connection->set_read_timeout(patience);
  connection->set_write_timeout(patience);
  if (!credentials.tls_authorities.empty()) connection->set_ca_cert_path(credentials.tls_authorities.c_str());
  if (credentials.token_file.empty()) return connection;
  auto const token = http::read_secret(credentials.token_file);
  if (!token) return token.error();
  connection->set_bearer_token_auth(token->c_str());
  return connection;
}

// The HTTP client only reports that there was no connection, so the reason is found here.
std::string why_not_connected(std::string const& host) {
  addrinfo* found = nullptr;
  auto const error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error == 0) ::freeaddrinfo(found);
  return error == 0 ? "nobody listens there" : "the name " + host + " does not resolve: " + ::gai_strerror(error);
}

std::string reason_of(httplib::Error error, std::string const& host, std::chrono::milliseconds patience,
                      httplib::Client const& connection) {
  switch (error) {
    case httplib::Error::Connection:
      return why_not_connected(host);
    case httplib::Error::ConnectionTimeout:
      return "no connection within " + format_seconds(connect_patience.count());
    case httplib::Error::Read:
      return "the connection ended, or was silent for " + format_seconds(static_cast<double>(patience.count()) / 1000);
    case httplib::Error::SSLLoadingCerts:
      return "the files of --tls-ca, --tls-cert or --tls-key cannot be used";
    case httplib::Error::SSLConnection:
      return "no TLS: is the URL to begin with http://, or is a certificate (--tls-cert, --tls-key) asked for?";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not accepted (" + why_not_verified(connection) +
             "): --tls-ca has to have the authority "
             "that signed it, and the URL a name that it is for";
    default:
      return httplib::to_string(error);
  }
}

bool is_without_connection(httplib::Error error) {
  return error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout;
}

// Repeats the request if the connection ends without an answer, but not if the service was silent for `patience`.
httplib::Result send_until_answered(httplib::Client& connection, httplib::Request const& question,
                                    std::chrono::milliseconds patience) {
  constexpr int attempts = 4;
  constexpr std::chrono::milliseconds pause{100};
  auto const until = std::chrono::steady_clock::now() + patience;
  for (int attempt = 1;; ++attempt) {
    auto answer = connection.send(question);
    bool const is_lost = answer.error() == httplib::Error::Read || answer.error() == httplib::Error::Write;
    if (!is_lost || attempt == attempts || std::chrono::steady_clock::now() >= until) return answer;
    std::this_thread::sleep_for(attempt * pause);
  }
}

Failure no_token(Error const& why) {
  return {.problem = {http::ProblemCode::unauthorized, "--token-file: " + why.detail}};
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

std::vector<std::string> split_services(std::string_view text) {
  std::vector<std::string> services;
  for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    services.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  services.emplace_back(text);
  return services;
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

std::string draw_key() {
  std::random_device random;
  auto const word = [&random] { return std::uint64_t{random()} << 32 | random(); };
  return "chorus-" + api::to_hex(word()) + api::to_hex(word());
}

Reply<std::string> Client::send(Request const& request) const {
  for (auto const& service : services_) {
    bool was_sent = true;
    auto reply = send_to(service, request, was_sent);
    if (reply || was_sent || &service == &services_.back()) return reply;
  }
  CHORUS_ASSERT(false, "there is a service");
  return std::string();
}

Reply<std::string> Client::send_to(std::string const& service, Request const& request, bool& was_sent) const {
  auto const url = http::parse_url(service).value();
  auto const origin = origin_of(url);
  auto const connection = connect(origin, credentials_, request.patience, request.follows);
  if (!connection) return no_token(connection.error());

  httplib::Request question;
  question.method = request.method;
  question.path = (url.path == "/" ? "" : url.path) + request.path;
  question.headers = {{"Accept", "application/json"}};
  if (!request.body.empty()) {
    question.headers.emplace("Content-Type", request.content_type);
    question.body = request.body;
  }
  for (auto const& [name, value] : request.fields) question.headers.emplace(name, value);
  auto const answer = request.repeatable ? send_until_answered(**connection, question, request.patience)
                                         : (*connection)->send(question);
  if (!answer) {
    was_sent = !is_without_connection(answer.error());
    return unreachable(who_, origin, reason_of(answer.error(), url.host, request.patience, **connection));
  }
  if (answer->status < 200 || answer->status > 299)
    return Failure{.problem = http::problem_from_json(answer->body, static_cast<unsigned>(answer->status)),
                   .location = answer->get_header_value("Location")};
  return answer->body;
}

std::optional<Failure> Client::follow(Request const& request,
                                      std::function<bool(std::string_view)> const& on_bytes) const {
  for (auto const& service : services_) {
    bool was_sent = true;
    auto failure = follow_at(service, request, on_bytes, was_sent);
    if (!failure || was_sent || &service == &services_.back()) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Client::follow_at(std::string const& service, Request const& request,
                                         std::function<bool(std::string_view)> const& on_bytes, bool& was_sent) const {
  auto const url = http::parse_url(service).value();
  auto const origin = origin_of(url);
  auto const connection = connect(origin, credentials_, request.patience, request.follows);
  if (!connection) return no_token(connection.error());
  int status = 0;
  std::string refusal;
  bool had_enough = false;
  httplib::Headers headers{{"Accept", "text/event-stream"}};
  for (auto const& [name, value] : request.fields) headers.emplace(name, value);
  auto const answer = (*connection)
                          ->Get((url.path == "/" ? "" : url.path) + request.path, headers,
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
  if (!answer) {
    was_sent = !is_without_connection(answer.error());
    return unreachable(who_, origin, reason_of(answer.error(), url.host, request.patience, **connection));
  }
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
