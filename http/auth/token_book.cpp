#include "http/auth/token_book.hpp"

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

namespace chorus::http {

Status TokenBook::open(WatchedFile::TimePoint now) {
  static_cast<void>(file_.has_changed(now));  // first, so that a change from now on is seen
  auto entries = read_tokens(file_.path());
  if (!entries) return entries.error();
  entries_ = std::move(*entries);
  return ok();
}

TokenBook::Found TokenBook::find(std::string_view token, WatchedFile::TimePoint now, WallTime today) {
  if (file_.has_changed(now)) {
    auto entries = read_tokens(file_.path());
    if (entries) {
      entries_ = std::move(*entries);
      spdlog::info("{}: {} tokens", file_.path(), entries_.size());
    } else {
      spdlog::error("the tokens stay as they were: {}", entries.error().detail);
    }
  }
  auto const hash = sha256(token);
  Found found;
  for (auto const& entry : entries_)
    if (::CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found.entry = &entry;
  if (found.entry == nullptr) return found;
  found.what = found.entry->expires && *found.entry->expires <= today ? Found::What::expired : Found::What::good;
  return found;
}

}  // namespace chorus::http
