// How a service is protected: its flags, and everything that follows from them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/auth/credentials.hpp"
#include "http/auth/guard.hpp"
#include "http/server.hpp"
#include "http/tls/context.hpp"

namespace chorus::http {

// As the flags of both services; docs/security.md explains them.
struct SecurityOptions {
  std::string auth_tokens;        // file of hashed tokens; "": no authentication
  bool insecure_no_auth = false;  // bind where others reach it all the same
  std::string token_file;         // the own token, for calls
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> cors_origins;
  std::optional<std::uint32_t> rate_limit;  // requests per second
  std::string audit_log;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_authorities;
  bool tls_requires_client_certificate = false;
};

// Outlives the server and the clients that use it. On the server's thread, but for credentials().
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
  // The name by which others are told to call this service: it answers to that, and its certificate has to be for it.
  // Errors: AuthErrc::bad_certificate.
  [[nodiscard]] Status answer_to(std::string const& host);

  [[nodiscard]] bool authenticates() const { return guard_.authenticates(); }
  // On purpose: whoever reaches the service may do everything.
  [[nodiscard]] bool is_unprotected() const { return insecure_no_auth_ && !authenticates(); }
  // When the certificate that this service shows expires, in seconds since 1970.
  [[nodiscard]] std::optional<double> certificate_ends_seconds() const;

 private:
  bool const insecure_no_auth_;
  std::string const certificate_path_;
  Guard guard_;
  std::optional<TlsContext> tls_;
  Credentials credentials_;
};

// A worker that has shown a certificate is one of its names. For a URL that it advertises.
[[nodiscard]] std::optional<Problem> check_identity(Caller const& caller, std::string_view url);

}  // namespace chorus::http
