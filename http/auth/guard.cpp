#include "http/auth/guard.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.hpp"
#include "base/runtime/socket_options.hpp"

namespace chorus::http {
namespace {

// Number of wrong tokens that an address may send before it has to wait, and the rate at which they are forgiven.
constexpr double failures_at_once = 20, failures_per_second = 1;

constexpr std::string_view page_headers =
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Range";

std::string address_of(std::string const& remote) { return remote.substr(0, remote.rfind(':')); }

bool is_loopback(std::string const& text) {
  boost::system::error_code error;
  auto const address = boost::asio::ip::make_address(text, error);
  if (error) return false;
  return plain(address).is_loopback();
}

// The name by which the client calls this service: from the target if it has one, otherwise from the Host field.
std::string_view host_of(Request const& request) {
  std::string_view const target = request.target;
  if (auto const scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    auto const authority = target.substr(scheme + 3);
    return authority.substr(0, authority.find_first_of("/?"));
  }
  return request.fields.find("Host").value_or("");
}

// The statuses of stop(): who has no token, may not, calls a strange name, or comes too often.
bool is_refusal(unsigned status) { return status == 401 || status == 403 || status == 421 || status == 429; }

bool changes(Method method) { return method != Method::get && method != Method::head && method != Method::options; }

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 200)) + "'"; }

Response too_often(std::uint32_t seconds, std::string detail) {
  Problem problem(ProblemCode::rate_limited, std::move(detail));
  problem.retry_after_s = seconds;
  return problem;
}

}  // namespace

Guard::Guard(GuardOptions options)
    : options_(std::move(options)),
      hosts_(options_.hosts, options_.origins),
      requests_(std::max(1u, options_.requests_per_second.value_or(requests_per_second_default)),
                2.0 * std::max(1u, options_.requests_per_second.value_or(requests_per_second_default))),
      failures_(failures_per_second, failures_at_once) {
  if (!options_.tokens.empty()) tokens_.emplace(options_.tokens);
  if (!options_.audit_log.empty()) audit_.emplace(options_.audit_log);
}

Status Guard::open() {
  if (tokens_)
    if (auto const read = tokens_->open(std::chrono::steady_clock::now()); !read) return read;
  return audit_ ? audit_->open() : ok();
}

void Guard::count(std::string_view reason) const {
  if (options_.on_refusal) options_.on_refusal(reason);
}

std::optional<Response> Guard::stop(Request& request, Router::Match const& match) {
  auto const now = std::chrono::steady_clock::now();
  if (tokens_) request.caller.role = Access::open;
  if (auto refusal = check_host(request, match)) return refusal;
  if (auto answer = check_origin(request, match)) return answer;
  auto const access = match.handler == nullptr ? Access::read : match.access;
  if (auto refusal = check_token(request, access, now)) return refusal;
  if (access == Access::open) return std::nullopt;
  return is_routine(match.pattern) ? std::nullopt : check_rate(request, now);
}

// Addresses pass: only a page from that address can have it as its origin. Load balancers ask for health by names of
// their own, and the answer tells a page nothing.
std::optional<Response> Guard::check_host(Request const& request, Router::Match const& match) {
  auto const host = host_of(request);
  if (request.fields.count("Host") > 1) return Problem(ProblemCode::bad_request, "there are several Host fields");
  if (host.empty() || hosts_.answers_to(host) || is_health(match.pattern)) return std::nullopt;
  count("host");
  return Problem(ProblemCode::unknown_host,
                 "this service does not know itself as " + quoted(host) + "; if it is, start it with --allowed-host");
}

std::optional<Response> Guard::check_origin(Request const& request, Router::Match const& match) {
  auto const origin = request.fields.find("Origin");
  if (!origin || HostRules::is_same(*origin, host_of(request))) return std::nullopt;
  if (!hosts_.welcomes(*origin)) {
    count("origin");
    return Problem(ProblemCode::forbidden,
                   "pages of " + quoted(*origin) + " may not speak to this service; --cors-origin allows them");
  }
  if (request.method != Method::options || !request.fields.find("Access-Control-Request-Method")) return std::nullopt;
  Response response(204);
  response.fields.set("Access-Control-Allow-Methods", match.allow.empty() ? "GET" : match.allow);
  response.fields.set("Access-Control-Allow-Headers", std::string(page_headers));
  response.fields.set("Access-Control-Max-Age", "600");
  return response;
}

std::optional<Response> Guard::check_token(Request& request, Access access, TimePoint now) {
  if (!tokens_) return std::nullopt;
  auto const field = request.fields.find("Authorization");
  if (!field) {
    if (access == Access::open) return std::nullopt;
    return unauthorized(request, "missing",
                        "this needs a token of the role " + std::string(name(access)) +
                            ", sent as 'Authorization: Bearer TOKEN'; `chorus token create` makes one",
                        now);
  }
  constexpr std::string_view scheme = "Bearer ";
  auto const token = field->substr(std::min(field->size(), scheme.size()));
  if (!equals_ignoring_case(field->substr(0, scheme.size()), scheme) || token.empty())
    return unauthorized(request, "unknown", "Authorization is not of the form 'Bearer TOKEN'", now);
  auto const found = tokens_->find(token, now, options_.clock());
  using What = TokenBook::Found::What;
  if (found.what == What::unknown)
    return unauthorized(request, "unknown", "the token is not known here: it was revoked, or is of another service",
                        now);
  request.caller.token = found.entry->id;
  if (found.what == What::expired)
    return unauthorized(request, "expired",
                        "the token " + found.entry->id + " has expired at " + to_text(*found.entry->expires) +
                            "; `chorus token create` makes a new one",
                        now);
  request.caller.role = found.entry->role;
  if (request.caller.may(access)) return std::nullopt;
  count("role");
  Response response(Problem(ProblemCode::forbidden, "this needs the role " + std::string(name(access)) +
                                                        ", and the token " + found.entry->id + " has the role " +
                                                        std::string(name(found.entry->role))));
  response.fields.set("WWW-Authenticate", R"(Bearer realm="chorus", error="insufficient_scope", scope=")" +
                                              std::string(name(access)) + '"');
  return response;
}

// Valid tokens never wait because of wrong tokens from the same address.
Response Guard::unauthorized(Request const& request, std::string_view reason, std::string detail, TimePoint now) {
  auto const address = address_of(request.remote);
  if (reason != "missing" && !is_loopback(address))
    if (auto const seconds = failures_.take(address, now)) {
      count("rate");
      return too_often(*seconds, "too many wrong tokens have come from " + address);
    }
  count(reason);
  Response response(Problem(ProblemCode::unauthorized, std::move(detail)));
  response.fields.set("WWW-Authenticate", reason == "missing" ? R"(Bearer realm="chorus")"
                                                              : R"(Bearer realm="chorus", error="invalid_token")");
  return response;
}

std::optional<Response> Guard::check_rate(Request const& request, TimePoint now) {
  auto const address = address_of(request.remote);
  auto const asked_for = options_.requests_per_second.has_value();
  if (!asked_for && (!tokens_ || is_loopback(address))) return std::nullopt;
  if (tokens_ && request.caller.may(Access::join)) return std::nullopt;
  auto const seconds = requests_.take(address, now);
  if (!seconds) return std::nullopt;
  count("rate");
  return too_often(*seconds, "more requests come from " + address + " than --rate-limit allows");
}

bool Guard::is_routine(std::string_view route) const {
  auto const& routine = options_.routine_routes;
  return std::find(routine.begin(), routine.end(), route) != routine.end();
}

void Guard::pass(Request const& request, std::string_view route, Response& response) {
  if (auto const origin = request.fields.find("Origin"); origin && hosts_.welcomes(*origin)) {
    response.fields.set("Access-Control-Allow-Origin", std::string(*origin));
    response.fields.set("Access-Control-Expose-Headers", "ETag, Location, Retry-After, Content-Range");
    response.fields.add("Vary", "Origin");
  }
  if (!audit_ || (!changes(request.method) && !is_refusal(response.status))) return;
  if (response.status < 400 && is_routine(route)) return;
  audit_->note(request, response, std::chrono::steady_clock::now(), options_.clock());
}

}  // namespace chorus::http
