// Checks every request before its handler: token, host name, origin, rate. Writes the audit log.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/calendar.hpp"
#include "collectives/core/result.hpp"
#include "http/auth/audit_log.hpp"
#include "http/auth/host_rules.hpp"
#include "http/auth/rate_limiter.hpp"
#include "http/auth/token_book.hpp"
#include "http/message/message.hpp"
#include "http/routing/router.hpp"

namespace chorus::http {

struct GuardOptions {
  std::string tokens;  // file; "": no authentication, everybody may do everything
  std::vector<std::string> hosts;
  std::vector<std::string> origins;
  // Limit for one address. Not limited: tokens of the service itself (role join), open routes, and routine routes,
  // because a refused renewal would cost a healthy worker its lease.
  // Without a value, addresses other than loopback have `requests_per_second_default` if there is authentication.
  std::optional<std::uint32_t> requests_per_second;
  std::string audit_log;                    // file; "": none
  std::vector<std::string> routine_routes;  // routes that change something but are in the audit log only when they fail
  WallClock clock = system_time;
  // Called with the reason of each refusal, for metrics: missing, unknown, expired, role, rate, host, origin.
  std::function<void(std::string_view reason)> on_refusal = {};
};

// Used on the server's thread; outlives the server.
class Guard {
 public:
  static constexpr std::uint32_t requests_per_second_default = 10000;

  explicit Guard(GuardOptions options);

  // Reads the tokens and opens the audit log. Errors: AuthErrc.
  [[nodiscard]] Status open();
  // Adds a name of this service. Call it before the server listens.
  void answer_to(std::string name) { hosts_.allow(std::move(name)); }

  [[nodiscard]] bool authenticates() const { return tokens_.has_value(); }

  // Returns the answer that replaces the handler's, if any: a refusal, or the answer to a CORS preflight. Otherwise
  // sets request.caller.
  [[nodiscard]] std::optional<Response> stop(Request& request, Router::Match const& match);
  // Completes every answer before it is sent, and writes the audit log.
  void pass(Request const& request, std::string_view route, Response& response);

 private:
  [[nodiscard]] std::optional<Response> check_host(Request const& request, Router::Match const& match);
  [[nodiscard]] std::optional<Response> check_origin(Request const& request, Router::Match const& match);
  [[nodiscard]] std::optional<Response> check_token(Request& request, Access access, TimePoint now);
  [[nodiscard]] bool is_routine(std::string_view route) const;
  [[nodiscard]] std::optional<Response> check_rate(Request const& request, TimePoint now);
  [[nodiscard]] Response unauthorized(Request const& request, std::string_view reason, std::string detail,
                                      TimePoint now);
  void count(std::string_view reason) const;

  GuardOptions const options_;
  HostRules hosts_;
  std::optional<TokenBook> tokens_;
  std::optional<AuditLog> audit_;
  RateLimiter requests_;
  RateLimiter failures_;
};

}  // namespace chorus::http
