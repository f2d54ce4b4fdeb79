// TLS on a socket that does not block: reads and writes as much as there is, and says what to wait for.
//
// OpenSSL speaks on the descriptor itself. Whoever owns the socket, on whichever thread, may go on with the stream: it
// is bound to the descriptor's number alone, and never closes it.
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
  // The server's end; `socket` is a connected descriptor that does not block, and outlives the stream.
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(std::shared_ptr<ssl_ctx_st> context, int socket);
  // The client's end. The peer's certificate has to be for `host`, a name or an address.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(std::shared_ptr<ssl_ctx_st> context, int socket,
                                                          std::string const& host);
  ~TlsStream();
  TlsStream(TlsStream const&) = delete;
  TlsStream& operator=(TlsStream const&) = delete;

  enum class Wait : std::uint8_t { nothing, to_read, to_write };
  struct Moved {
    std::size_t bytes = 0;
    Wait wait = Wait::nothing;        // nothing could be moved until the socket is ready for this
    boost::system::error_code error;  // asio::error::eof: closed in good order; otherwise why() says more
  };
  [[nodiscard]] Moved handshake();
  // As much as there is, into both; at least one byte unless it waits or fails.
  [[nodiscard]] Moved read(std::span<std::byte> first, std::span<std::byte> second = {});
  // Once bytes count as written they may change, also while some of them wait here, encrypted, for room in the socket:
  // `Moved::wait` beside `bytes` says so.
  [[nodiscard]] Moved write(std::span<std::span<std::byte const> const> pieces);
  // Some of it waits: write() again, with what comes next or nothing.
  [[nodiscard]] bool has_unsent() const { return unsent_ != 0; }

  // There is something to read that the socket alone does not show.
  [[nodiscard]] bool has_pending() const;
  // Fewer system calls for much data, and buffers that are kept. Not before a connection that goes on without TLS.
  void read_ahead();
  // Tells the peer that nothing more comes; does not wait for its answer.
  void close_notify();

  // Of the last error: whose certificate is wrong in which way, and how to mend it.
  [[nodiscard]] std::string const& why() const { return why_; }
  // The client has spoken plain HTTP.
  [[nodiscard]] bool met_plain_http() const { return met_plain_http_; }
  // The peer's, verified; nothing if it has shown none.
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
  std::unique_ptr<std::byte[]> mix_;  // small pieces become one record here, and what is unsent stays
  std::size_t unsent_ = 0;            // bytes of a record that was not written whole
  Moved failed_;                      // after bytes that counted: what the next read has to say
  bool starved_ = false;              // the last read took everything that could be read
  std::string why_;
  bool met_plain_http_ = false;
};

}  // namespace chorus::http
