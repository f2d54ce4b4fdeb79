#include "http/tls/context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <array>
#include <system_error>
#include <utility>

#include "http/tls/errc.hpp"

namespace chorus::http {
namespace {

// The first suite is the fastest where the processor has instructions for it, and as secure as the others.
constexpr char const* suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr char const* older_ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// A file that cannot be opened leaves the system's reason first, and one of OpenSSL without it last.
std::string openssl_reason() {
  auto const first = ::ERR_peek_error();
  auto const code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  if (ERR_SYSTEM_ERROR(first)) return std::generic_category().message(ERR_GET_REASON(first));
  if (code == 0) return "unknown";
  if (auto const* const reason = ::ERR_reason_error_string(code)) return reason;
  std::array<char, 256> text{};
  ::ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

Error bad(std::string detail) { return {AuthErrc::bad_certificate, std::move(detail)}; }

}  // namespace

TlsContext::TlsContext(Side side, TlsFiles files) : side_(side), files_(std::move(files)) {
  for (auto const* path : {&files_.certificate, &files_.key, &files_.authorities})
    if (!path->empty()) watched_.emplace_back(*path);
}

bool TlsContext::has_changed() {
  bool changed = false;
  for (auto& file : watched_) changed = file.has_changed(std::chrono::steady_clock::now()) || changed;
  return changed;
}

Result<TlsContext::Loaded> TlsContext::load() const {
  ::ERR_clear_error();
  Loaded loaded;
  loaded.context = {::SSL_CTX_new(side_ == Side::server ? ::TLS_server_method() : ::TLS_client_method()),
                    ::SSL_CTX_free};
  auto* const context = loaded.context.get();
  if (context == nullptr) return bad("OpenSSL: " + openssl_reason());
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_ciphersuites(context, suites);
  ::SSL_CTX_set_cipher_list(context, older_ciphers);
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Connections are kept, so resumption would save nothing, and the peer would have to read the tickets.
  ::SSL_CTX_set_num_tickets(context, 0);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Idle connections keep no buffers.
  ::SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);

  if (!files_.certificate.empty()) {
    if (::SSL_CTX_use_certificate_chain_file(context, files_.certificate.c_str()) != 1)
      return bad("the certificate " + files_.certificate + " cannot be read: " + openssl_reason());
    if (::SSL_CTX_use_PrivateKey_file(context, files_.key.c_str(), SSL_FILETYPE_PEM) != 1)
      return bad("the key " + files_.key + " cannot be read, or is not that of " + files_.certificate + ": " +
                 openssl_reason());
    if (::SSL_CTX_check_private_key(context) != 1)
      return bad("the key " + files_.key + " is not that of " + files_.certificate);
    loaded.certificate = certificate_of(*::SSL_CTX_get0_certificate(context));
  }
  bool const trusts = files_.authorities.empty()
                          ? side_ == Side::server || ::SSL_CTX_set_default_verify_paths(context) == 1
                          : ::SSL_CTX_load_verify_locations(context, files_.authorities.c_str(), nullptr) == 1;
  if (!trusts) return bad("the authorities in " + files_.authorities + " cannot be read: " + openssl_reason());
  if (side_ == Side::client) {
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  } else if (!files_.authorities.empty()) {
    ::SSL_CTX_set_client_CA_list(context, ::SSL_load_client_CA_file(files_.authorities.c_str()));
    auto const mode = files_.requires_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | mode, nullptr);
  }
  return loaded;
}

Status TlsContext::open() {
  std::lock_guard const lock(mutex_);
  static_cast<void>(has_changed());
  auto loaded = load();
  if (!loaded) return loaded.error();
  if (side_ == Side::server && loaded->certificate && loaded->certificate->ends <= system_time())
    return bad("the certificate " + files_.certificate + " has expired at " + to_text(loaded->certificate->ends) +
               ": renew it");
  loaded_ = std::move(*loaded);
  return ok();
}

std::shared_ptr<ssl_ctx_st> TlsContext::current() {
  std::lock_guard const lock(mutex_);
  if (!has_changed() && loaded_.context) return loaded_.context;
  if (auto loaded = load()) {
    loaded_ = std::move(*loaded);
    complaint_.clear();
    if (loaded_.certificate)
      spdlog::info("{}: a new certificate, until {}", files_.certificate, to_text(loaded_.certificate->ends));
  } else {
    for (auto& file : watched_) file.forget();
    auto const& why = loaded.error().detail;
    if (std::exchange(complaint_, why) != why) spdlog::error("the certificates stay as they were: {}", why);
  }
  return loaded_.context;
}

std::optional<Certificate> TlsContext::certificate() const {
  std::lock_guard const lock(mutex_);
  return loaded_.certificate;
}

}  // namespace chorus::http
