#include "http/tls/stream.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>

namespace chorus::http {
namespace {

namespace asio = boost::asio;

constexpr std::size_t record_bytes_max = 16384;  // of TLS

bool is_address(std::string const& host) {
  boost::system::error_code error;
  static_cast<void>(asio::ip::make_address(host, error));
  return !error;
}

// Explains the peer's alert about this side's certificate.
std::string alert(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "a client certificate is required: --tls-cert and --tls-key";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer refused this side's certificate: it has expired; renew it";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return "the peer refused this side's certificate";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "the peer does not know who signed this side's certificate: the peer's --tls-ca has to have that "
             "authority";
    case SSL_R_WRONG_VERSION_NUMBER:
      return "the peer does not speak TLS: its URL begins with http://";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "the peer speaks no TLS of version 1.2 or later";
    default:
      return {};
  }
}

// OpenSSL does not keep a refused certificate. It is stored with the connection, because the explanation needs it.
void free_refused(void*, void* x509, CRYPTO_EX_DATA*, int, long, void*) { ::X509_free(static_cast<X509*>(x509)); }

int refused_index() {
  static int const index = ::CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, nullptr, nullptr, nullptr, &free_refused);
  return index;
}

int keep_refused(int is_good, X509_STORE_CTX* verification) {
  if (is_good == 1) return 1;
  auto* const ssl =
      static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(verification, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const x509 = ::X509_STORE_CTX_get0_cert(verification);
  if (x509 != nullptr && ::SSL_get_ex_data(ssl, refused_index()) == nullptr && ::X509_up_ref(x509) == 1)
    ::SSL_set_ex_data(ssl, refused_index(), x509);
  return 0;
}

}  // namespace

TlsStream::TlsStream(std::shared_ptr<ssl_ctx_st> context, int socket)
    : context_(std::move(context)), socket_(socket), ssl_(::SSL_new(context_.get())) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  auto* const bio = socket_.make();
  ::SSL_set_bio(ssl_, bio, bio);
  ::SSL_set_verify(ssl_, ::SSL_get_verify_mode(ssl_), &keep_refused);
}

TlsStream::~TlsStream() { ::SSL_free(ssl_); }

std::unique_ptr<TlsStream> TlsStream::accept(std::shared_ptr<ssl_ctx_st> context, int socket) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context), socket));
  ::SSL_set_accept_state(stream->ssl_);
  return stream;
}

std::unique_ptr<TlsStream> TlsStream::connect(std::shared_ptr<ssl_ctx_st> context, int socket,
                                              std::string const& host) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context), socket));
  stream->host_ = host;
  ::SSL_set_connect_state(stream->ssl_);
  if (is_address(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(stream->ssl_), host.c_str());
  } else {
    ::SSL_set1_host(stream->ssl_, host.c_str());
    auto name = host;
    ::SSL_ctrl(stream->ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  }
  return stream;
}

std::string TlsStream::wrong_certificate(long verdict) const {
  auto const* const x509 = static_cast<X509 const*>(::SSL_get_ex_data(ssl_, refused_index()));
  auto const theirs = x509 == nullptr ? Certificate{} : certificate_of(*x509);
  auto const whose = "the peer's certificate (" + theirs.subject + ") ";
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return whose + "has expired at " + to_text(theirs.ends) + ": renew it there";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return whose + "is not valid before " + to_text(theirs.begins) + ": look at the clocks";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return whose + "is for " + joined(theirs.names) + ", and not for " + host_ +
             ": issue one with that name, or advertise one of its names";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:  // another authority with the same name
      return whose + "is signed by nobody whom this side believes: its authority has to be in --tls-ca";
    default:
      return whose + "is not accepted: " + ::X509_verify_cert_error_string(verdict);
  }
}

// OpenSSL's error queue belongs to the thread: it is emptied here.
void TlsStream::explain() {
  auto const code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  auto const reason = ERR_GET_REASON(code);
  if (reason == SSL_R_HTTP_REQUEST) met_plain_http_ = true;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    why_ = wrong_certificate(::SSL_get_verify_result(ssl_));
  else
    why_ = alert(reason);
  if (!why_.empty()) return;
  auto const* const text = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  why_ = std::string("TLS: ") + (text != nullptr ? text : "the connection was cut");
}

TlsStream::Moved TlsStream::judge(int result, std::size_t bytes) {
  if (result > 0) return {bytes, Wait::nothing, {}};
  auto const number = errno;
  switch (::SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {0, Wait::to_read, {}};
    case SSL_ERROR_WANT_WRITE:
      return {0, Wait::to_write, {}};
    case SSL_ERROR_ZERO_RETURN:
      return {0, Wait::nothing, asio::error::eof};
    case SSL_ERROR_SYSCALL:
      ::ERR_clear_error();
      if (number == 0) break;
      why_ = std::strerror(number);
      return {0, Wait::nothing, {number, boost::system::system_category()}};
    default:
      break;
  }
  explain();
  return {0, Wait::nothing, asio::error::connection_aborted};
}

TlsStream::Moved TlsStream::handshake() {
  ::ERR_clear_error();
  return judge(::SSL_do_handshake(ssl_), 0);
}

TlsStream::Moved TlsStream::read(std::span<std::byte> first, std::span<std::byte> second) {
  if (failed_.error) return failed_;
  std::size_t total = 0;
  starved_ = false;
  for (auto space : {first, second}) {
    while (!space.empty()) {
      ::ERR_clear_error();
      errno = 0;
      std::size_t bytes = 0;
      auto const result = ::SSL_read_ex(ssl_, space.data(), space.size(), &bytes);
      auto const moved = judge(result, bytes);
      starved_ = moved.wait != Wait::nothing;
      if (moved.error) failed_ = moved;
      if (starved_ || moved.error) return total > 0 ? Moved{total, Wait::nothing, {}} : moved;
      total += bytes;
      space = space.subspan(bytes);
    }
  }
  return {total, Wait::nothing, {}};
}

// An encrypted record has to be sent unchanged, even if the socket takes only a part of it. From then on its bytes
// count as written, and the next calls finish it.
TlsStream::Moved TlsStream::write_record(std::span<std::byte const> bytes) {
  ::ERR_clear_error();
  errno = 0;
  std::size_t written = 0;
  auto const result = ::SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written);
  auto const moved = judge(result, written);
  if (moved.wait == Wait::nothing) return moved;
  if (!mix_) mix_ = std::make_unique<std::byte[]>(record_bytes_max);
  if (bytes.data() != mix_.get()) std::memcpy(mix_.get(), bytes.data(), bytes.size());
  unsent_ = bytes.size();
  return {bytes.size(), moved.wait, {}};
}

TlsStream::Moved TlsStream::flush() {
  if (unsent_ == 0) return {};
  ::ERR_clear_error();
  errno = 0;
  std::size_t written = 0;
  auto const result = ::SSL_write_ex(ssl_, mix_.get(), unsent_, &written);
  auto const moved = judge(result, written);
  if (moved.wait == Wait::nothing) unsent_ = 0;
  return {0, moved.wait, moved.error};
}

TlsStream::Moved TlsStream::write(std::span<std::span<std::byte const> const> pieces) {
  if (auto const flushed = flush(); flushed.error || flushed.wait != Wait::nothing) return flushed;
  std::size_t total = 0;
  std::size_t skip = 0;  // of pieces.front()
  std::size_t left_bytes = 0;
  for (auto const piece : pieces) left_bytes += piece.size();
  while (!pieces.empty()) {
    auto record = pieces.front().subspan(skip);
    if (record.empty()) {
      pieces = pieces.subspan(1);
      skip = 0;
      continue;
    }
    if (record.size() < record_bytes_max && pieces.size() > 1) {
      if (!mix_) mix_ = std::make_unique<std::byte[]>(record_bytes_max);
      std::size_t mixed = 0;
      auto from = skip;
      for (auto const piece : pieces) {
        auto const bytes = std::min(piece.size() - from, record_bytes_max - mixed);
        if (bytes > 0) std::memcpy(mix_.get() + mixed, piece.data() + from, bytes);  // memcpy must not get null
        mixed += bytes;
        from = 0;
        if (mixed == record_bytes_max) break;
      }
      record = {mix_.get(), mixed};
    }
    record = record.first(std::min(record.size(), record_bytes_max));
    left_bytes -= record.size();
    socket_.more_follows(left_bytes > 0);
    auto const moved = write_record(record);
    socket_.more_follows(false);
    if (moved.error) return total > 0 ? Moved{total, Wait::nothing, {}} : moved;
    total += moved.bytes;
    if (moved.wait != Wait::nothing) return {total, moved.wait, {}};
    for (auto left = moved.bytes; left > 0;) {
      auto const bytes = std::min(left, pieces.front().size() - skip);
      left -= bytes;
      skip += bytes;
      if (skip == pieces.front().size()) {
        pieces = pieces.subspan(1);
        skip = 0;
      }
    }
  }
  return {total, Wait::nothing, {}};
}

// OpenSSL also counts an incomplete record as pending, but its data cannot be read yet.
bool TlsStream::has_pending() const {
  return failed_.error || (!starved_ && (::SSL_has_pending(ssl_) == 1 || socket_.has_read_ahead()));
}

void TlsStream::read_ahead() {
  ::SSL_clear_mode(ssl_, SSL_MODE_RELEASE_BUFFERS);
  socket_.read_ahead();
}

void TlsStream::close_notify() {
  ::ERR_clear_error();
  if (::SSL_is_init_finished(ssl_) == 1 && unsent_ == 0) static_cast<void>(::SSL_shutdown(ssl_));
  ::ERR_clear_error();
}

std::optional<Certificate> TlsStream::peer_certificate() const {
  auto const* const x509 = ::SSL_get0_peer_certificate(ssl_);
  if (x509 == nullptr || ::SSL_get_verify_result(ssl_) != X509_V_OK) return std::nullopt;
  return certificate_of(*x509);
}

}  // namespace chorus::http
