// The valid tokens, read again when their file changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/runtime/watched_file.hpp"
#include "http/auth/token_file.hpp"

namespace chorus::http {

// Used on one thread.
class TokenBook {
 public:
  explicit TokenBook(std::string path) : file_(std::move(path)) {}

  // Errors: those of read_tokens().
  [[nodiscard]] Status open(WatchedFile::TimePoint now);

  struct Found {
    enum class What : std::uint8_t { good, unknown, expired } what = What::unknown;
    TokenEntry const* entry = nullptr;  // null for an unknown token; valid until the next call
  };
  // Takes the same time for every token: each entry is compared to its end. If the file has changed and cannot be read,
  // the tokens stay as they were, one message is logged, and the file is read again until it can be.
  // For an unknown token the file is checked at once, because the token may be new.
  [[nodiscard]] Found find(std::string_view token, WatchedFile::TimePoint now, WallTime today);

 private:
  void read_if_changed(WatchedFile::TimePoint now);
  [[nodiscard]] TokenEntry const* entry_of(Sha256 const& hash) const;

  WatchedFile file_;
  std::vector<TokenEntry> entries_;
};

}  // namespace chorus::http
