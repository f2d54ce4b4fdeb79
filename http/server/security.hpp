// The protection of a service: its flags and the objects made from them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/auth/credentials.hpp"
#include "http/auth/guard.hpp"
#include "http/server/security_options.hpp"
#include "http/server/server.hpp"
#include "http/tls/context.hpp"

namespace chorus::http {

// Outlives the server and the clients that use it. Used on the server's thread, except credentials().
class Security {
 public:
  // on_refusal: see GuardOptions.
  Security(SecurityOptions const& options, std::vector<std::string> routine_routes,
           std::function<void(std::string_view reason)> on_refusal);

  // Reads every file. Errors: AuthErrc.
  [[nodiscard]] Status open();

  [[nodiscard]] Door door();
  [[nodiscard]] Credentials const& credentials() const { return credentials_; }

  // "https" or "http".
  [[nodiscard]] std::string_view scheme() const { return tls_ ? "https" : "http"; }
  // Adds the name by which others call this service. The service then answers to this name, and its certificate must be
  // valid for it. Errors: AuthErrc::bad_certificate.
  [[nodiscard]] Status answer_to(std::string const& host);

  [[nodiscard]] bool authenticates() const { return guard_.authenticates(); }
  // True if the operator chose that every caller may do everything.
  [[nodiscard]] bool is_unprotected() const { return insecure_no_auth_ && !authenticates(); }
  // Expiry of the certificate that this service shows, in seconds since 1970. Reads changed files again, also while no
  // connection begins.
  [[nodiscard]] std::optional<double> certificate_ends_seconds() const;

 private:
  bool const insecure_no_auth_;
  std::string const certificate_path_;
  Guard guard_;
  mutable std::optional<TlsContext> tls_;  // reads files that have changed
  Credentials credentials_;
};

// Checks that a worker with a certificate advertises a URL with one of the names in the certificate.
[[nodiscard]] std::optional<Problem> check_identity(Caller const& caller, std::string_view url);

}  // namespace chorus::http
