// The certificate, key and authorities of one side, read again when their files change: connections that begin
// afterwards use the new ones.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/auth/watched_file.hpp"
#include "http/tls/certificate.hpp"

struct ssl_ctx_st;

namespace chorus::http {

struct TlsFiles {
  std::string certificate;  // PEM, with its chain; "" on a client that does not show one
  std::string key;          // PEM
  std::string authorities;  // PEM, whom this side believes; "" on a client: those of the system
  bool requires_client_certificate = false;
};

// TLS 1.2 and later. Thread-safe.
class TlsContext {
 public:
  enum class Side : std::uint8_t { server, client };
  TlsContext(Side side, TlsFiles files);

  // Errors: AuthErrc::bad_certificate; the detail says which file, and what is wrong with it.
  [[nodiscard]] Status open();

  // What new connections use; valid for as long as it is held. Files that have changed and cannot be used leave it as
  // it was, and are complained about. Without open() they are read by the first call; null if that fails.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> current();

  // Its own.
  [[nodiscard]] std::optional<Certificate> certificate() const;

 private:
  struct Loaded {
    std::shared_ptr<ssl_ctx_st> context;
    std::optional<Certificate> certificate;
  };
  [[nodiscard]] Result<Loaded> load() const;
  [[nodiscard]] bool has_changed();

  Side const side_;
  TlsFiles const files_;
  mutable std::mutex mutex_;
  std::vector<WatchedFile> watched_;
  Loaded loaded_;
};

}  // namespace chorus::http
