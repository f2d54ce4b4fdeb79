#include "http/auth/token_book.hpp"

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

namespace chorus::http {

Status TokenBook::open(WatchedFile::TimePoint now) {
  static_cast<void>(file_.has_changed(now));  // before the read, so that no later change is missed
  auto entries = read_tokens(file_.path());
  if (!entries) return entries.error();
  entries_ = std::move(*entries);
  return ok();
}

void TokenBook::read_if_changed(WatchedFile::TimePoint now) {
  if (!file_.has_changed(now)) return;
  auto entries = read_tokens(file_.path());
  if (entries) {
    entries_ = std::move(*entries);
    spdlog::info("{}: {} tokens", file_.path(), entries_.size());
  } else if (entries.error().code != AuthErrc::unreadable || file_.forget()) {
    spdlog::error("the tokens stay as they were: {}", entries.error().detail);
  }
}

TokenEntry const* TokenBook::entry_of(Sha256 const& hash) const {
  TokenEntry const* found = nullptr;
  for (auto const& entry : entries_)
    if (::CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  return found;
}

TokenBook::Found TokenBook::find(std::string_view token, WatchedFile::TimePoint now, WallTime today) {
  read_if_changed(now);
  auto const hash = sha256(token);
  Found found{.entry = entry_of(hash)};
  if (found.entry == nullptr) {
    file_.look_again();
    read_if_changed(now);
    found.entry = entry_of(hash);
  }
  if (found.entry == nullptr) return found;
  found.what = found.entry->expires && *found.entry->expires <= today ? Found::What::expired : Found::What::good;
  return found;
}

}  // namespace chorus::http
