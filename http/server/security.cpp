#include "http/server/security.hpp"

#include <unistd.h>

#include <array>

#include "http/client/client.hpp"
#include "http/tls/errc.hpp"

namespace chorus::http {
namespace {

std::vector<std::string> names_of(SecurityOptions const& options) {
  auto names = options.allowed_hosts;
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0 && own[0] != '\0') names.emplace_back(own.data());
  return names;
}

TlsFiles files_of(SecurityOptions const& options) {
  return {options.tls_certificate, options.tls_key, options.tls_authorities, options.tls_requires_client_certificate};
}

GuardOptions guard_options(SecurityOptions const& options, std::vector<std::string> routine_routes,
                           std::function<void(std::string_view)> on_refusal) {
  GuardOptions guard;
  guard.tokens = options.auth_tokens;
  guard.hosts = names_of(options);
  guard.origins = options.cors_origins;
  guard.requests_per_second = options.rate_limit;
  guard.audit_log = options.audit_log;
  guard.routine_routes = std::move(routine_routes);
  guard.on_refusal = std::move(on_refusal);
  return guard;
}

}  // namespace

Security::Security(SecurityOptions const& options, std::vector<std::string> routine_routes,
                   std::function<void(std::string_view)> on_refusal)
    : insecure_no_auth_(options.insecure_no_auth),
      certificate_path_(options.tls_certificate),
      guard_(guard_options(options, std::move(routine_routes), std::move(on_refusal))),
      credentials_(options.token_file, files_of(options)) {
  if (!options.tls_certificate.empty()) tls_.emplace(TlsContext::Side::server, files_of(options));
}

Status Security::open() {
  if (auto const opened = guard_.open(); !opened) return opened;
  if (tls_)
    if (auto const opened = tls_->open(); !opened) return opened;
  return credentials_.open();
}

Door Security::door() { return {&guard_, tls_ ? &*tls_ : nullptr, !guard_.authenticates() && !insecure_no_auth_}; }

Status Security::answer_to(std::string const& host) {
  guard_.answer_to(host);
  auto const certificate = tls_ ? tls_->certificate() : std::nullopt;
  if (!certificate || covers(certificate->names, host)) return ok();
  return Error(AuthErrc::bad_certificate, "the certificate " + certificate_path_ + " is for " +
                                              joined(certificate->names) + ", and others are told to call " + host +
                                              ": issue one with that name, or give one of its names to --advertise");
}

std::optional<double> Security::certificate_ends_seconds() const {
  if (tls_) static_cast<void>(tls_->current());
  auto const certificate = tls_ ? tls_->certificate() : std::nullopt;
  if (!certificate) return std::nullopt;
  return static_cast<double>(certificate->ends.time_since_epoch().count());
}

std::optional<Problem> check_identity(Caller const& caller, std::string_view text) {
  auto const url = parse_url(text);
  if (!caller.certificate_names || !url || covers(*caller.certificate_names, url->host)) return std::nullopt;
  return Problem(ProblemCode::forbidden, "the certificate is for " + joined(*caller.certificate_names) +
                                             ", and the worker advertises " + url->host +
                                             ": a certificate has to be for what is advertised");
}

}  // namespace chorus::http
