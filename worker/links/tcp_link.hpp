// A link over a TCP connection, plain or with TLS.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "http/message/message.hpp"
#include "worker/links/frame_stream.hpp"
#include "worker/links/handler_memory.hpp"
#include "worker/links/link.hpp"

namespace chorus::links {

// Reads and writes without blocking as much as possible, and waits for readiness only then. Nothing is allocated per
// frame or wait. Made with std::make_shared: a pending wait keeps a closed link's memory until the executor has run the
// wait's handler.
class TcpLink final : public Link, public std::enable_shared_from_this<TcpLink> {
 public:
  // The socket's executor is an io_context's; one thread runs it and makes all calls.
  TcpLink(http::Connection connection, Framing framing);

  void start(LinkHandler& handler) override;
  void flush() override;
  Taken send_coalesced_frame(CoalescedFrame const& coalesced_frame) override;  // on a plain connection
  [[nodiscard]] bool send_message(MessageFrame const& message) override;       // on a plain connection
  void release(std::uint64_t run) override;
  void close() override;
  [[nodiscard]] std::string_view kind() const override { return tls_ ? "tls" : "tcp"; }

  // Reads without waiting for readiness; false if nothing had arrived.
  bool poll();
  // Returns the socket's descriptor, for poll(2); -1 once closed.
  [[nodiscard]] int handle() { return closed_ ? -1 : socket_.native_handle(); }
  // True once the link is closed.
  [[nodiscard]] bool is_gone() const { return closed_; }

 private:
  void notice_a_host_that_is_gone();
  void delay_acknowledgements();
  [[nodiscard]] std::size_t receive(FrameReader::Space const& space, boost::system::error_code& error);
  [[nodiscard]] std::size_t send(boost::system::error_code& error);
  [[nodiscard]] bool is_free() const;  // frames may be written now, in front of the handler's
  [[nodiscard]] boost::asio::io_context::executor_type loop();
  void wait_readable();
  void read_later();
  void wait_writable();
  bool read();  // false if nothing had arrived
  void write();
  void write_again();
  void read_failed(boost::system::error_code error);
  void write_failed(boost::system::error_code error);
  void fail(Error why);

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<http::TlsStream> tls_;  // null without TLS
  std::string early_bytes_;
  LinkHandler* handler_ = nullptr;  // null once closed
  bool closed_ = false;
  bool writing_ = false;  // inside write(), whose loop also serves nested calls
  unsigned reads_ = 0;
  HandlerMemory read_memory_;   // for the wait of read_waits_
  HandlerMemory write_memory_;  // for the wait of write_waits_
  bool read_waits_ = false;     // reading waits for readiness or its turn
  bool write_waits_ = false;    // writing waits for readiness or its turn; after an error for ever
  boost::system::error_code write_error_;
  FrameReader reader_;
  FrameWriter writer_;
};

}  // namespace chorus::links
