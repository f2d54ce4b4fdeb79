// Stands before every handler of a server: who asks, by which name, how often, and whether they may. Keeps the audit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/auth/audit_log.hpp"
#include "http/auth/calendar.hpp"
#include "http/auth/host_rules.hpp"
#include "http/auth/rate_limiter.hpp"
#include "http/auth/token_book.hpp"
#include "http/message.hpp"
#include "http/router.hpp"

namespace chorus::http {

struct GuardOptions {
  std::string tokens;  // file; "": no authentication, everybody may do everything
  std::vector<std::string> hosts;
  std::vector<std::string> origins;
  // From one address, except with a token of the service itself (role join) and for what is open to anybody. Without a
  // number addresses other than loopback have `requests_per_second_default` where there is authentication.
  std::optional<std::uint32_t> requests_per_second;
  std::string audit_log;                    // file; "": none
  std::vector<std::string> routine_routes;  // that change something and are in the audit only when they fail
  WallClock clock = system_time;
  // Why somebody was refused: missing, unknown, expired, role, rate, host, origin. For metrics.
  std::function<void(std::string_view reason)> on_refusal = {};
};

// On the server's thread; outlives the server.
class Guard {
 public:
  static constexpr std::uint32_t requests_per_second_default = 10000;

  explicit Guard(GuardOptions options);

  // Reads the tokens, opens the audit. Errors: AuthErrc.
  [[nodiscard]] Status open();
  // A name that this service turned out to have. Before the server listens.
  void answer_to(std::string name) { hosts_.allow(std::move(name)); }

  [[nodiscard]] bool authenticates() const { return tokens_.has_value(); }

  // What is answered in place of the handler, if anything: a refusal, or what a browser asks before it lets a page
  // send its request. Otherwise request.caller says who it is.
  [[nodiscard]] std::optional<Response> stop(Request& request, Router::Match const& match);
  // Every answer passes here on its way out.
  void pass(Request const& request, std::string_view route, Response& response);

 private:
  [[nodiscard]] std::optional<Response> check_host(Request const& request);
  [[nodiscard]] std::optional<Response> check_origin(Request const& request, Router::Match const& match);
  [[nodiscard]] std::optional<Response> check_token(Request& request, Access access, TimePoint now);
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
