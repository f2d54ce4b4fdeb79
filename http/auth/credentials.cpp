#include "http/auth/credentials.hpp"

#include <spdlog/spdlog.h>

#include "http/auth/token_file.hpp"

namespace chorus::http {

Credentials::Credentials(std::string token_file, TlsFiles tls)
    : has_files_(!tls.certificate.empty() || !tls.authorities.empty()),
      file_(std::move(token_file)),
      tls_(TlsContext::Side::client, std::move(tls)) {}

Status Credentials::open() {
  // The system has many authorities: they are read at the first https call.
  if (has_files_)
    if (auto const opened = tls_.open(); !opened) return opened;
  if (file_.path().empty()) return ok();
  static_cast<void>(file_.has_changed(std::chrono::steady_clock::now()));
  auto const token = read_secret(file_.path());
  if (!token) return token.error();
  authorization_ = "Bearer " + *token;
  return ok();
}

std::string Credentials::authorization() const {
  if (file_.path().empty()) return {};
  std::lock_guard const lock(mutex_);
  if (file_.has_changed(std::chrono::steady_clock::now())) {
    auto const token = read_secret(file_.path());
    if (token)
      authorization_ = "Bearer " + *token;
    else if (token.error().code != AuthErrc::unreadable || file_.forget())
      spdlog::error("the token stays as it was: {}", token.error().detail);
  }
  return authorization_;
}

std::string Credentials::authorization_after(std::string const& refused) const {
  {
    std::lock_guard const lock(mutex_);
    if (authorization_ == refused) file_.look_again();
  }
  return authorization();
}

}  // namespace chorus::http
