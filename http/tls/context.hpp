// The certificate, key and authorities of one side. They are read again when their files change, and used by
// connections that begin afterwards.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/watched_file.hpp"
#include "collectives/core/result.hpp"
#include "http/tls/certificate.hpp"
#include "http/tls/files.hpp"

struct ssl_ctx_st;

namespace chorus::http {

// TLS 1.2 and later. Thread-safe.
class TlsContext {
 public:
  enum class Side : std::uint8_t { server, client };
  TlsContext(Side side, TlsFiles files);

  // Errors: AuthErrc::bad_certificate; the detail says which file, and what is wrong with it.
  [[nodiscard]] Status open();

  // Returns the context for new connections; the pointer keeps it alive. If files change and cannot be used, the
  // context stays as it was, a message is logged, and the files are read again until they can be. Without open() the
  // first call reads the files; null if that fails.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> current();

  // The certificate of this side.
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
  std::string complaint_;  // why the files could not be used last; "" if they were
};

}  // namespace chorus::http
