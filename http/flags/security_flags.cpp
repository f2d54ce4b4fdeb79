#include "http/flags/security_flags.hpp"

namespace chorus::http {

void add_security_flags(CLI::App& app, SecurityOptions& options) {
  app.add_option("--auth-tokens", options.auth_tokens,
                 "file of hashed tokens, as `chorus token create` writes it: callers need one of them")
      ->envname("CHORUS_AUTH_TOKENS")
      ->type_name("FILE");
  app.add_flag("--insecure-no-auth", options.insecure_no_auth,
               "listen where others reach it without authentication: they may do everything")
      ->envname("CHORUS_INSECURE_NO_AUTH");
  app.add_option("--token-file", options.token_file,
                 "file with this service's own token, of the role join, which it sends to the others")
      ->envname("CHORUS_TOKEN_FILE")
      ->type_name("FILE");
  app.add_option("--allowed-host", options.allowed_hosts,
                 "names by which this service may be called, beside addresses, localhost and its own; *.SUFFIX, or *")
      ->envname("CHORUS_ALLOWED_HOST")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--cors-origin", options.cors_origins, "web origins whose pages may speak to this service")
      ->envname("CHORUS_CORS_ORIGIN")
      ->delimiter(',')
      ->type_name("ORIGIN,...");
  app.add_option("--rate-limit", options.rate_limit,
                 "requests per second from one address (default: 10000 with --auth-tokens, none from loopback)")
      ->envname("CHORUS_RATE_LIMIT")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N");
  app.add_option("--audit-log", options.audit_log, "file to which every call that changes something is appended")
      ->envname("CHORUS_AUDIT_LOG")
      ->type_name("FILE");
  auto* const certificate =
      app.add_option("--tls-cert", options.tls_certificate, "certificate with its chain, PEM: serve https alone")
          ->envname("CHORUS_TLS_CERT")
          ->type_name("FILE");
  auto* const key = app.add_option("--tls-key", options.tls_key, "its private key, PEM")
                        ->envname("CHORUS_TLS_KEY")
                        ->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  auto* const authorities =
      app.add_option("--tls-ca", options.tls_authorities,
                     "authorities, PEM, that others' certificates have to be signed by (default: the system's)")
          ->envname("CHORUS_TLS_CA")
          ->type_name("FILE");
  app.add_flag("--tls-require-client-cert", options.tls_requires_client_certificate,
               "refuse whoever does not show a certificate of --tls-ca")
      ->envname("CHORUS_TLS_REQUIRE_CLIENT_CERT")
      ->needs(certificate)
      ->needs(authorities);
}

}  // namespace chorus::http
