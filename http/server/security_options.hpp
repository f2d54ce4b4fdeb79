// How a service is protected: its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::http {

// As the flags of both services; docs/guides/security.md explains them.
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

}  // namespace chorus::http
