#include "http/tls/socket_bio.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace chorus::http {
namespace {

constexpr std::size_t ahead_bytes = 16384;
// For a payload of at least this size only the header of the next record is read ahead, so that its payload is received
// where it is decrypted. For smaller payloads it is cheaper to take many records in one read and to copy them.
constexpr std::size_t bulk_bytes = 4096;
constexpr std::size_t record_header_bytes = 5;

}  // namespace

void SocketBio::read_ahead() {
  if (!ahead_) ahead_ = std::make_unique_for_overwrite<std::byte[]>(ahead_bytes);
}

// Like read(2); also fills the read-ahead buffer.
long SocketBio::read(std::byte* to, std::size_t bytes) {
  if (!ahead_) return ::recv(socket_, to, bytes, 0);
  auto const held = std::min(bytes, end_ - begin_);
  std::memcpy(to, ahead_.get() + begin_, held);
  begin_ += held;
  if (held == bytes) return static_cast<long>(bytes);
  begin_ = end_ = 0;
  auto const lacking = bytes - held;
  std::array<iovec, 2> places{{{to + held, lacking}, {ahead_.get(), ahead_bytes}}};
  if (lacking >= bulk_bytes) places[1].iov_len = record_header_bytes;
  auto const got = ::readv(socket_, places.data(), static_cast<int>(places.size()));
  if (got <= 0) return held > 0 ? static_cast<long>(held) : got;
  auto const placed = std::min(static_cast<std::size_t>(got), lacking);
  end_ = static_cast<std::size_t>(got) - placed;
  return static_cast<long>(held + placed);
}

long SocketBio::write(void const* from, std::size_t bytes) {
  auto const sent = ::send(socket_, from, bytes, MSG_NOSIGNAL | (more_ ? MSG_MORE : 0));
  if (sent < 0 && more_ && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    // The rest of the data will take a while to follow. The system must not hold back the last packet until then:
    // setting this option sends it.
    int const on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    errno = EAGAIN;
  }
  return sent;
}

struct BioFunctions {
  static SocketBio& of(BIO* bio) { return *static_cast<SocketBio*>(::BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int bytes) {
    ::BIO_clear_retry_flags(bio);
    auto const got = of(bio).read(reinterpret_cast<std::byte*>(to), static_cast<std::size_t>(bytes));
    if (got < 0 && ::BIO_sock_should_retry(-1) == 1) BIO_set_retry_read(bio);
    of(bio).at_end_ = got == 0;
    return static_cast<int>(got);
  }

  static int write(BIO* bio, char const* from, int bytes) {
    ::BIO_clear_retry_flags(bio);
    auto const sent = of(bio).write(from, static_cast<std::size_t>(bytes));
    if (sent < 0 && ::BIO_sock_should_retry(-1) == 1) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return of(bio).at_end_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO_METHOD* make_method() {
    auto* const method = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "chorus socket");
    if (method == nullptr) throw std::bad_alloc();
    ::BIO_meth_set_read(method, &BioFunctions::read);
    ::BIO_meth_set_write(method, &BioFunctions::write);
    ::BIO_meth_set_ctrl(method, &BioFunctions::control);
    return method;
  }
};

bio_st* SocketBio::make() {
  static BIO_METHOD* const method = BioFunctions::make_method();  // constant; OpenSSL keeps its address
  auto* const bio = ::BIO_new(method);
  if (bio == nullptr) throw std::bad_alloc();
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  return bio;
}

}  // namespace chorus::http
