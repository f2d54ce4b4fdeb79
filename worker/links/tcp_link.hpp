// A link over a TCP connection, plain or with TLS.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "http/message.hpp"
#include "worker/links/frame_stream.hpp"
#include "worker/links/handler_memory.hpp"
#include "worker/links/link.hpp"

namespace chorus::links {

// Reads and writes without blocking, as much as there is, and waits for readiness only when there is no more. Nothing
// is allocated per frame or wait. Made with std::make_shared: a wait that is pending when the link is closed keeps the
// link's memory until the executor has run its end.
class TcpLink final : public Link, public std::enable_shared_from_this<TcpLink> {
 public:
  // The socket's executor is an io_context's; one thread runs it and makes all calls.
  TcpLink(http::Connection connection, Framing framing);

  void start(LinkHandler& handler) override;
  void flush() override;
  Taken send_parcel(Parcel const& parcel) override;  // on a plain connection
  void release(std::uint64_t run) override;
  void close() override;
  [[nodiscard]] std::string_view kind() const override { return tls_ ? "tls" : "tcp"; }

  // Reads what is there, without being told that there is something; false if there was nothing.
  bool poll();
  // Of the socket, to be asked about with others; -1 once it is closed.
  [[nodiscard]] int handle() { return closed_ ? -1 : socket_.native_handle(); }
  // Closed; nothing will move any more.
  [[nodiscard]] bool is_gone() const { return closed_; }

 private:
  void notice_a_host_that_is_gone();
  void delay_acknowledgements();
  [[nodiscard]] std::size_t receive(FrameReader::Space const& space, boost::system::error_code& error);
  [[nodiscard]] std::size_t send(boost::system::error_code& error);
  [[nodiscard]] boost::asio::io_context::executor_type loop();
  void wait_readable();
  void read_later();
  void wait_writable();
  bool read();  // false if there was nothing
  void write();
  void write_again();
  void read_failed(boost::system::error_code error);
  void write_failed(boost::system::error_code error);
  void fail(Error why);

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<http::TlsStream> tls_;  // null: plain
  std::string early_bytes_;
  LinkHandler* handler_ = nullptr;  // null once closed
  bool closed_ = false;
  bool writing_ = false;  // inside write(): calls from within are answered by its loop
  unsigned reads_ = 0;
  HandlerMemory read_memory_;   // of read_waits_
  HandlerMemory write_memory_;  // of write_waits_
  bool read_waits_ = false;     // for readiness
  bool write_waits_ = false;    // for readiness, for its turn, or for good after an error
  boost::system::error_code write_error_;
  FrameReader reader_;
  FrameWriter writer_;
};

}  // namespace chorus::links
