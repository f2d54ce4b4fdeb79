// TLS on a non-blocking socket: reads and writes as much as possible, and says what to wait for.
//
// OpenSSL uses the descriptor directly. The current owner of the socket, on any thread, may continue the stream: the
// stream is bound only to the descriptor's number, and never closes it.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/tls/certificate.hpp"
#include "http/tls/socket_bio.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace chorus::http {

class TlsStream {
 public:
  // The server's end; `socket` is a connected, non-blocking descriptor and outlives the stream.
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(std::shared_ptr<ssl_ctx_st> context, int socket);
  // The client's end. The peer's certificate must be valid for `host`, a name or an address.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(std::shared_ptr<ssl_ctx_st> context, int socket,
                                                          std::string const& host);
  ~TlsStream();
  TlsStream(TlsStream const&) = delete;
  TlsStream& operator=(TlsStream const&) = delete;

  enum class Wait : std::uint8_t { nothing, to_read, to_write };
  struct Moved {
    std::size_t bytes = 0;
    Wait wait = Wait::nothing;        // no byte could be moved until the socket is ready for this
    boost::system::error_code error;  // asio::error::eof: the peer closed properly; otherwise why() says more
  };
  [[nodiscard]] Moved handshake();
  // Reads all available bytes into `first`, then `second`; at least one byte unless it waits or fails.
  [[nodiscard]] Moved read(std::span<std::byte> first, std::span<std::byte> second = {});
  // Encrypts and sends. The caller may change bytes that count as written, even while their encrypted form still waits
  // for room in the socket: then `Moved::wait` is set beside `bytes`.
  [[nodiscard]] Moved write(std::span<std::span<std::byte const> const> pieces);
  // True while a record is not completely sent: call write() again, with more data or none.
  [[nodiscard]] bool has_unsent() const { return unsent_ != 0; }

  // True if data can be read that the socket alone does not show.
  [[nodiscard]] bool has_pending() const;
  // Saves system calls on connections with much data; their buffers are kept. Not for a connection that later continues
  // without TLS.
  void read_ahead();
  // Tells the peer that no more data comes; does not wait for its answer.
  void close_notify();

  // Explains the last error: whose certificate is wrong in which way, and how to mend it.
  [[nodiscard]] std::string const& why() const { return why_; }
  // True if the client has sent plain HTTP.
  [[nodiscard]] bool met_plain_http() const { return met_plain_http_; }
  // The peer's verified certificate; empty if it has shown none.
  [[nodiscard]] std::optional<Certificate> peer_certificate() const;

 private:
  TlsStream(std::shared_ptr<ssl_ctx_st> context, int socket);
  [[nodiscard]] Moved judge(int result, std::size_t bytes);
  [[nodiscard]] Moved flush();
  void explain();
  [[nodiscard]] std::string wrong_certificate(long verdict) const;
  [[nodiscard]] Moved write_record(std::span<std::byte const> bytes);

  std::shared_ptr<ssl_ctx_st> context_;
  SocketBio socket_;
  ssl_st* ssl_;
  std::string host_;                  // of connect()
  std::unique_ptr<std::byte[]> mix_;  // joins small pieces into one record, and keeps an unsent record
  std::size_t unsent_ = 0;            // bytes of a record that was not written whole
  Moved failed_;                      // error that the next read reports, because this one returned bytes first
  bool starved_ = false;              // the last read took everything that could be read
  std::string why_;
  bool met_plain_http_ = false;
};

}  // namespace chorus::http
