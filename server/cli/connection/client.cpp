#include "server/cli/connection/client.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <random>
#include <thread>

#include "collectives/core/assert.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/client/client.hpp"
#include "http/tls/errc.hpp"
#include "http/wire/errc.hpp"
#include "server/cli/connection/connection.hpp"
#include "server/cli/connection/redirects.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

bool is_unavailable(Failure const& failure) { return failure.problem.code == http::ProblemCode::unavailable; }

// The service answers that it could not take the request: it starts, or none leads at present.
bool is_refusal(Failure const& failure) { return failure.reachable && is_unavailable(failure); }

// What is told of services that were asked one after the other: the last refusal, or the last failure.
void keep(std::optional<Failure>& told, Failure failure) {
  if (!told || is_refusal(failure) || !is_refusal(*told)) told = std::move(failure);
}

Failure unusable_credentials(Error const& why) {
  if (why.code == http::AuthErrc::bad_certificate)
    return {.problem = {http::ProblemCode::unauthorized, why.detail}, .is_local = true};
  return {.problem = {http::ProblemCode::unauthorized, "--token-file: " + why.detail}};
}

// An answer that another URL has, for this request.
bool is_redirect(int status, std::string const& method) {
  return status == 307 || status == 308 || (method == "GET" && status >= 301 && status <= 303);
}

httplib::Headers with_fields(Request const& request, char const* accepted) {
  httplib::Headers headers{{"Accept", accepted}};
  for (auto const& [name, value] : request.fields) headers.emplace(name, value);
  return headers;
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
  Repeats repeats;
  for (bool was_lost = false;;) {
    auto delivery = Delivery::none;
    auto reply = send_once(request, delivery);
    was_lost = was_lost || delivery == Delivery::lost || delivery == Delivery::silent;
    auto const pause = request.repeatable ? repeats.pause_after(delivery, Repeats::Clock::now()) : std::nullopt;
    if (pause) {
      std::this_thread::sleep_for(*pause);
      continue;
    }
    if (reply) return reply;
    if (!was_lost || request.method == "GET" || !is_unavailable(reply.error())) return explained(reply.error());
    auto failure = reply.error();
    failure.problem.detail += "; the request may have been carried out";
    failure.may_be_done = true;
    return failure;
  }
}

Reply<std::string> Client::send_once(Request const& request, Delivery& delivery) const {
  std::optional<Failure> told;
  auto of_all = Delivery::none;
  for (auto const& service : services_) {
    auto reply = send_to(service, request, delivery);
    bool const is_refused = reply.has_error() && is_refusal(reply.error());
    if (!is_refused && delivery != Delivery::none) return reply;
    if (is_refused && delivery == Delivery::lost) of_all = Delivery::lost;
    keep(told, reply.error());
  }
  CHORUS_ASSERT(told, "there is a service");
  delivery = of_all;
  return std::move(*told);
}

Reply<std::string> Client::send_to(std::string const& service, Request const& request, Delivery& delivery) const {
  Redirects redirects(who_, service, request.path);
  for (;;) {
    auto reply = send_at(redirects, request, delivery);
    if (reply || !request.follows || reply.error().location.empty()) return reply;
    auto failure = redirects.follow(reply.error().location);
    if (!failure) continue;
    if (failure->reachable) delivery = Delivery::none;
    return std::move(*failure);
  }
}

Reply<std::string> Client::send_at(Redirects const& at, Request const& request, Delivery& delivery) const {
  auto const& url = at.target();
  auto const connection = connect(origin_of(url), credentials_, request.patience);
  delivery = Delivery::answered;
  if (!connection) return unusable_credentials(connection.error());

  httplib::Request question;
  question.method = request.method;
  question.path = url.path;
  question.headers = with_fields(request, "application/json");
  if (!request.body.empty()) {
    question.headers.emplace("Content-Type", request.content_type);
    question.body = request.body;
  }
  auto const began = Repeats::Clock::now();
  auto const answer = (*connection)->send(question);
  if (!answer) {
    bool const was_silent = Repeats::Clock::now() - began >= request.patience;
    Unanswered const unanswered{answer.error(), url, request.patience, was_silent,
                                !credentials_.tls_certificate.empty()};
    delivery = delivery_of(unanswered);
    return at.unreachable(reason_of(unanswered, **connection));
  }
  if (answer->status >= 200 && answer->status <= 299) return answer->body;
  Failure failure{.problem = http::problem_from_json(answer->body, static_cast<unsigned>(answer->status))};
  if (is_redirect(answer->status, request.method)) failure.location = answer->get_header_value("Location");
  constexpr int service_unavailable = 503;
  if (is_unavailable(failure) && answer->status != service_unavailable) delivery = Delivery::lost;  // by a proxy
  return failure;
}

std::optional<Failure> Client::follow(Request const& request,
                                      std::function<bool(std::string_view)> const& on_bytes) const {
  std::optional<Failure> told;
  for (auto const& service : services_) {
    bool was_sent = true;
    auto failure = follow_at(service, request, on_bytes, was_sent);
    if (!failure || (was_sent && !is_refusal(*failure))) return failure;
    keep(told, std::move(*failure));
  }
  return told;
}

std::optional<Failure> Client::follow_at(std::string const& service, Request const& request,
                                         std::function<bool(std::string_view)> const& on_bytes, bool& was_sent) const {
  Redirects redirects(who_, service, request.path);
  for (;;) {
    auto failure = listen_at(redirects, request, on_bytes, was_sent);
    if (!failure || failure->location.empty()) return failure;
    if (auto refused = redirects.follow(failure->location)) return refused;
  }
}

std::optional<Failure> Client::listen_at(Redirects const& at, Request const& request,
                                         std::function<bool(std::string_view)> const& on_bytes, bool& was_sent) const {
  auto const& url = at.target();
  auto const connection = connect(origin_of(url), credentials_, request.patience);
  if (!connection) return unusable_credentials(connection.error());
  int status = 0;
  std::string refusal, location;
  bool had_enough = false;
  auto heard = Repeats::Clock::now();
  auto const answer = (*connection)
                          ->Get(
                              url.path, with_fields(request, "text/event-stream"),
                              [&](httplib::Response const& head) {
                                status = head.status;
                                if (is_redirect(status, "GET")) location = head.get_header_value("Location");
                                return true;
                              },
                              [&](char const* data, std::size_t size) {
                                heard = Repeats::Clock::now();
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
    bool const was_silent = Repeats::Clock::now() - heard >= request.patience;
    Unanswered const unanswered{answer.error(), url, request.patience, was_silent,
                                !credentials_.tls_certificate.empty()};
    return at.unreachable(reason_of(unanswered, **connection));
  }
  if (status / 100 == 2) return std::nullopt;
  auto const problem = http::problem_from_json(refusal, static_cast<unsigned>(status));
  if (location.empty()) return explained({problem});
  return Failure{.problem = problem, .location = location};
}

Failure Client::explained(Failure failure) const {
  using http::ProblemCode;
  auto const code = failure.problem.code;
  if ((code != ProblemCode::not_found && code != ProblemCode::internal) || who_ != coordinator) return failure;
  auto delivery = Delivery::none;
  auto const about = send_once({.path = "/v1"}, delivery);
  if (!about && about.error().problem.code != ProblemCode::internal) return failure;
  boost::system::error_code error;
  auto const service = about ? boost::json::parse(*about, error) : boost::json::value();
  auto const* const object = service.if_object();
  auto const* const name = object == nullptr ? nullptr : object->if_contains("name");
  if (name != nullptr && *name == "chorus-worker")
    failure.problem.detail += ": this is a worker, and --coordinator has to name its coordinator";
  else if (name == nullptr && code == ProblemCode::internal)
    return {.problem = {ProblemCode::unavailable, "what answers at " + join(services_, ", ") +
                                                      " is no coordinator of Chorus: " + failure.problem.detail},
            .reachable = false};
  return failure;
}

Failure Client::not_understood(Request const& request, http::Problem const& why) {
  Failure failure{.problem = why};
  failure.problem.code = http::ProblemCode::internal;
  failure.problem.detail = "the answer to " + request.method + " " + request.path + " is not understood: " + why.detail;
  return failure;
}

}  // namespace chorus::cli
