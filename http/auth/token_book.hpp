// The tokens that are known, read again when their file changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/auth/token_file.hpp"
#include "http/auth/watched_file.hpp"

namespace chorus::http {

// On one thread.
class TokenBook {
 public:
  explicit TokenBook(std::string path) : file_(std::move(path)) {}

  // Errors: those of read_tokens().
  [[nodiscard]] Status open(WatchedFile::TimePoint now);

  struct Found {
    enum class What : std::uint8_t { good, unknown, expired } what = What::unknown;
    TokenEntry const* entry = nullptr;  // unless unknown; until the next call
  };
  // Takes as long for every token: each entry is compared to its end. A file that has changed and cannot be read leaves
  // the tokens as they were, and is complained about once.
  [[nodiscard]] Found find(std::string_view token, WatchedFile::TimePoint now, WallTime today);

 private:
  WatchedFile file_;
  std::vector<TokenEntry> entries_;
};

}  // namespace chorus::http
