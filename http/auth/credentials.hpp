// The token and the certificate that this process shows to the services that it calls.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/runtime/watched_file.hpp"
#include "collectives/core/result.hpp"
#include "http/tls/context.hpp"

namespace chorus::http {

// Thread-safe. Both are read again when their files change.
class Credentials {
 public:
  // `token_file`: "" for none.
  Credentials(std::string token_file, TlsFiles tls);

  // Errors: AuthErrc.
  [[nodiscard]] Status open();

  // Value of the Authorization field, or "".
  [[nodiscard]] std::string authorization() const;
  // The same, after a service refused `refused`: the token may have been replaced in the meantime.
  [[nodiscard]] std::string authorization_after(std::string const& refused) const;
  // The TLS context for https URLs.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> tls() const { return tls_.current(); }

 private:
  bool const has_files_;
  mutable std::mutex mutex_;
  mutable WatchedFile file_;
  mutable std::string authorization_;
  mutable TlsContext tls_;
};

}  // namespace chorus::http
