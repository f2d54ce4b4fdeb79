#include "worker/links/tcp_link.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/container/static_vector.hpp>
#include <utility>

#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The most that one connection moves before the other connections of its thread have their turn.
constexpr std::size_t tcp_turn_bytes = 2u << 20;

constexpr unsigned reads_per_wish = 64;

// Up to this size, pieces are copied together and sent as one buffer.
constexpr std::size_t small_bytes = 1024;

// Reads from these pages, so that a truncated mapping raises SIGBUS and BusGuard replaces its pages. A system call
// fails with EFAULT instead. After that the link goes on, and the owner of the memory sees that it is broken. If the
// system refuses the memory again, because it is read-only for example, the link ends.
void touch(std::span<std::byte const> bytes) {
  constexpr std::size_t page_bytes = 4096;
  auto const* const memory = static_cast<std::byte const volatile*>(bytes.data());
  for (std::size_t at = 0; at < bytes.size(); at += page_bytes) static_cast<void>(memory[at]);
  if (!bytes.empty()) static_cast<void>(memory[bytes.size() - 1]);
}

}  // namespace

TcpLink::TcpLink(http::Connection connection, Framing framing)
    : socket_(std::move(connection.socket)),
      tls_(std::move(connection.tls)),
      early_bytes_(std::move(connection.early_bytes)),
      reader_(framing),
      writer_(framing) {
  if (tls_) tls_->read_ahead();
  error_code ignored;  // a socket that refuses these options fails at its first read
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  notice_a_host_that_is_gone();
  delay_acknowledgements();
}

// A process that dies closes its connections; a host that loses power or network does not. Keep-alive probes detect
// that on an idle connection, and the user timeout when sent data is not acknowledged. A stopped process is detected by
// the runs that wait for it, because its system goes on answering.
void TcpLink::notice_a_host_that_is_gone() {
  constexpr int idle_s = 5, between_s = 2, probes = 3, unacknowledged_ms = 10000;
  error_code ignored;
  using asio::detail::socket_option::integer;
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPIDLE>(idle_s), ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPINTVL>(between_s), ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPCNT>(probes), ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_USER_TIMEOUT>(unacknowledged_ms), ignored);
}

// Data goes one way on a link, so that nothing carries acknowledgements back: the system would send a packet for every
// short message. The system resets this option now and then, so read() sets it again.
void TcpLink::delay_acknowledgements() {
  error_code ignored;
  socket_.set_option(asio::detail::socket_option::boolean<IPPROTO_TCP, TCP_QUICKACK>(false), ignored);
}

void TcpLink::start(LinkHandler& handler) {
  handler_ = &handler;
  auto const early = std::move(early_bytes_);
  if (auto fed = reader_.feed(handler, early, closed_); fed.has_error()) return fail(fed.error());
  if (closed_) return;
  if (!early.empty()) handler.link_rests();
  if (!closed_) read_later();
}

void TcpLink::flush() {
  if (handler_ != nullptr && !closed_ && !writing_ && !write_waits_) write();
}

bool TcpLink::is_free() const {
  return handler_ != nullptr && !closed_ && !writing_ && !write_waits_ && !tls_ && writer_.empty();
}

bool TcpLink::send_message(MessageFrame const& message) {
  if (!is_free()) return false;
  std::array<std::byte, message_frame_size_max> together;
  auto const size = writer_.lay(message, together);
  error_code error;
  auto const sent = socket_.write_some(asio::buffer(together.data(), size), error);
  if (error || sent == 0) return false;
  if (sent == size) return true;
  writer_.hold(std::span(together).first(size).subspan(sent));
  wait_writable();
  return true;
}

// Errors are not reported here: if the error lasts, write() of the same frames finds it again.
Taken TcpLink::send_coalesced_frame(CoalescedFrame const& coalesced_frame) {
  if (!is_free()) return Taken::nothing;
  std::array<std::byte, coalesced_frame_size_max> together;
  auto const size = writer_.lay(coalesced_frame, together);
  error_code error;
  auto const sent = socket_.write_some(asio::buffer(together.data(), size), error);
  if (error || sent == 0) return Taken::nothing;
  if (sent == size) return Taken::whole;
  writer_.hold(coalesced_frame, sent);
  wait_writable();
  return Taken::in_part;
}

void TcpLink::release(std::uint64_t run) { writer_.release(run); }

void TcpLink::close() {
  flush();
  if (closed_) return;
  closed_ = true;
  handler_ = nullptr;
  if (tls_) tls_->close_notify();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void TcpLink::fail(Error why) {
  if (closed_) return;
  auto* const handler = handler_;
  close();
  handler->link_closed(std::move(why));
}

// Returns the io_context's own executor: posting to the socket's type-erased one would allocate.
asio::io_context::executor_type TcpLink::loop() {
  return static_cast<asio::io_context&>(socket_.get_executor().context()).get_executor();
}

void TcpLink::wait_readable() {
  if (std::exchange(read_waits_, true)) return;
  socket_.async_wait(asio::ip::tcp::socket::wait_read, read_memory_.bind([self = shared_from_this()](error_code) {
    self->read_waits_ = false;
    if (!self->closed_) self->read();
  }));
}

// Bytes that are buffered in the TLS stream do not make the socket ready.
void TcpLink::read_later() {
  if (!tls_ || !tls_->has_pending()) return wait_readable();
  if (std::exchange(read_waits_, true)) return;
  asio::post(loop(), read_memory_.bind([self = shared_from_this()] {
    self->read_waits_ = false;
    if (!self->closed_) self->read();
  }));
}

// Reads only while read_waits_: neither before start() nor inside read().
bool TcpLink::poll() { return !closed_ && read_waits_ && read(); }

void TcpLink::wait_writable() {
  write_waits_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_write,
                     write_memory_.bind([self = shared_from_this()](error_code) { self->write_again(); }));
}

void TcpLink::write_again() {
  write_waits_ = false;
  flush();
  if (!closed_) handler_->link_rests();
}

std::size_t TcpLink::receive(FrameReader::Space const& space, error_code& error) {
  if (!tls_) {
    // One buffer is less work for the system than a list, and most reads find nothing.
    if (space[1].empty()) return socket_.read_some(asio::buffer(space[0].data(), space[0].size()), error);
    std::array<asio::mutable_buffer, 2> const buffers{asio::buffer(space[0].data(), space[0].size()),
                                                      asio::buffer(space[1].data(), space[1].size())};
    return socket_.read_some(buffers, error);
  }
  auto const moved = tls_->read(space[0], space[1]);
  error = moved.error;
  if (moved.wait != http::TlsStream::Wait::nothing) error = asio::error::would_block;
  return moved.bytes;
}

// Sends the bytes that the writer has gathered, or a part of them.
std::size_t TcpLink::send(error_code& error) {
  auto const pieces = writer_.gather();
  if (tls_) {
    auto const moved = tls_->write(pieces);
    error = moved.error;
    if (moved.wait != http::TlsStream::Wait::nothing) error = asio::error::would_block;
    return moved.bytes;
  }
  boost::container::static_vector<asio::const_buffer, FrameWriter::gathered_max> buffers;
  std::size_t total = 0;
  for (auto const& bytes : pieces) {
    total += bytes.size();
    buffers.emplace_back(bytes.data(), bytes.size());
  }
  // Copying a few bytes is faster than sending a list of buffers.
  std::array<std::byte, small_bytes> together;
  if (total > together.size()) return socket_.write_some(buffers, error);
  asio::buffer_copy(asio::buffer(together), buffers);
  return socket_.write_some(asio::buffer(together.data(), total), error);
}

bool TcpLink::read() {
  if (++reads_ % reads_per_wish == 0) delay_acknowledgements();
  std::size_t budget = tcp_turn_bytes;
  bool was_touched = false;
  for (bool moved = false;; moved = true) {
    auto const space = reader_.space(*handler_);
    error_code error;
    auto const bytes = receive(space, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      wait_readable();
      return moved;
    }
    if (error == boost::system::errc::bad_address && !std::exchange(was_touched, true)) {
      touch(space[0]);
      touch(space[1]);
      continue;
    }
    if (error) {
      read_failed(error);
      return true;
    }
    was_touched = false;
    auto const arrived = reader_.arrived(*handler_, bytes, closed_);
    if (arrived.has_error()) fail(arrived.error());
    if (closed_) return true;
    handler_->link_rests();
    if (closed_) return true;
    if (bytes < space[0].size() + space[1].size()) {
      read_later();
      return true;
    }
    budget -= std::min(budget, bytes);
    if (budget == 0) break;
  }
  // The budget is used up: the other connections have their turn first.
  read_later();
  return true;
}

void TcpLink::read_failed(error_code error) {
  auto why = write_error_                   ? write_error_.message()
             : error == asio::error::eof    ? std::string("closed by the peer")
             : tls_ && !tls_->why().empty() ? tls_->why()
                                            : error.message();
  if (reader_.within_frame()) why += " in the middle of a frame";
  auto const first = write_error_ ? write_error_ : error;
  bool const by_peer =
      first == asio::error::eof || first == asio::error::connection_reset || first == asio::error::broken_pipe;
  fail(Error(by_peer ? LinkErrc::closed : LinkErrc::broken, std::move(why)));
}

void TcpLink::write() {
  writing_ = true;
  error_code error;
  std::size_t budget = tcp_turn_bytes;
  bool was_touched = false;
  while (!closed_ && !error) {
    writer_.fill(*handler_);
    if (budget == 0 || (writer_.empty() && !(tls_ && tls_->has_unsent()))) break;
    auto const bytes = send(error);
    if (error == boost::system::errc::bad_address && !std::exchange(was_touched, true)) {
      for (auto const& piece : writer_.gather()) touch(piece);
      error.clear();
      continue;
    }
    was_touched = was_touched && bytes == 0;
    writer_.wrote(*handler_, bytes);
    budget -= std::min(budget, bytes);
  }
  writing_ = false;
  if (closed_) return;
  if (error == asio::error::would_block || error == asio::error::try_again) return wait_writable();
  if (error) return write_failed(error);
  if (writer_.empty()) return;
  write_waits_ = true;
  asio::post(loop(), write_memory_.bind([self = shared_from_this()] { self->write_again(); }));
}

// The peer's last frames may say why it closed. So the link reads them first, and reading then finds the end.
void TcpLink::write_failed(error_code error) {
  write_waits_ = true;
  write_error_ = error;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
}

}  // namespace chorus::links
