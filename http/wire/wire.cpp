#include "http/wire/wire.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

// Limits of one call of the system, or of TLS. While the other side keeps up, such a call goes on as long as there are
// bytes, and other work of the thread waits. Sending takes longer where the system has to find memory for its buffers.
constexpr std::size_t received_at_once = 1 << 20, sent_at_once = 256 << 10;

// The connections of a thread send large bodies in turns: one call of the system for each turn of the loop, so that
// other work waits for one of them, and not for one of each connection.
class LargeWrites : public asio::execution_context::service {
 public:
  using key_type = LargeWrites;
  static inline asio::execution_context::id id;
  explicit LargeWrites(asio::execution_context& context) : service(context) {}

  bool begin(asio::any_io_executor const& executor) {
    if (has_begun_) return false;
    has_begun_ = true;
    asio::post(executor, [this] { has_begun_ = false; });  // runs after the loop has looked for other work
    return true;
  }

 private:
  void shutdown() override {}
  bool has_begun_ = false;  // in this turn of the loop
};

asio::awaitable<void> wait_for_turn(asio::any_io_executor executor, std::size_t bytes) {
  constexpr std::size_t large_bytes = 64 << 10;
  if (bytes < large_bytes) co_return;
  auto& writes = asio::use_service<LargeWrites>(asio::query(executor, asio::execution::context));
  while (!writes.begin(executor)) co_await asio::post(executor, asio::use_awaitable);
}

template <class Byte>
std::span<Byte> at_most(std::span<Byte> bytes, std::size_t limit) {
  return bytes.first(std::min(bytes.size(), limit));
}

struct Sent {
  boost::system::error_code error;  // would_block: nothing could be sent without waiting
  std::size_t bytes = 0;
};

Sent send_now(asio::ip::tcp::socket& socket, std::string_view head, std::span<std::byte const> body) {
  std::array parts{iovec{const_cast<char*>(head.data()), head.size()},
                   iovec{const_cast<std::byte*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  auto const sent = ::sendmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return {{errno, boost::system::system_category()}, 0};
  return {{}, static_cast<std::size_t>(sent)};
}

}  // namespace

Wire::Wire(asio::ip::tcp::socket socket, std::size_t buffer_bytes)
    : socket_(std::move(socket)), buffer_bytes_(buffer_bytes) {}

void Wire::set_patience(Patience patience) {
  patience_ = patience;
  waited_ = {};
  moved_bytes_ = 0;
  expired_ = false;
}

void Wire::consume(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

std::span<std::byte> Wire::room() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(buffer_bytes_);
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  return std::as_writable_bytes(std::span(buffer_.get() + end_, buffer_bytes_ - end_));
}

void Wire::receive_now() {
  auto const free = room();
  if (free.empty() || expired_) return;
  std::size_t bytes = 0;
  if (tls_) {
    bytes = tls_->read(free).bytes;
  } else {
    auto const received = ::recv(socket_.native_handle(), free.data(), free.size(), MSG_DONTWAIT);
    bytes = received < 0 ? 0 : static_cast<std::size_t>(received);
  }
  end_ += bytes;
  anything_received_ |= bytes > 0;
}

asio::awaitable<Wire::Moved> Wire::receive() {
  auto const free = room();
  if (free.empty()) co_return Moved{0, HttpErrc::too_large};
  if (expired_) co_return Moved{0, HttpErrc::timed_out};
  if (tls_) {
    auto const moved = co_await read_tls(free);
    end_ += moved.bytes;
    co_await give_way(moved.bytes);
    co_return moved;
  }
  begin_waiting();
  auto const [error, bytes] = co_await socket_.async_read_some(asio::buffer(free.data(), free.size()), tuple_awaitable);
  end_ += bytes;
  anything_received_ |= bytes > 0;
  co_return end_waiting(error, bytes);
}

asio::awaitable<Wire::Moved> Wire::read_some(std::span<std::byte> destination) {
  if (auto const ready = buffered(); !ready.empty()) {
    auto const bytes = std::min(ready.size(), destination.size());
    std::memcpy(destination.data(), ready.data(), bytes);
    consume(bytes);
    moved_bytes_ += bytes;
    co_return Moved{bytes, {}};
  }
  if (expired_) co_return Moved{0, HttpErrc::timed_out};
  destination = at_most(destination, received_at_once);
  if (tls_) {
    auto const moved = co_await read_tls(destination);
    co_await give_way(moved.bytes);
    co_return moved;
  }
  begin_waiting();
  auto const [error, bytes] =
      co_await socket_.async_read_some(asio::buffer(destination.data(), destination.size()), tuple_awaitable);
  anything_received_ |= bytes > 0;
  co_return end_waiting(error, bytes);
}

asio::awaitable<Wire::Moved> Wire::write(std::string_view head, std::span<std::byte const> body) {
  if (tls_) {
    std::array<std::span<std::byte const>, 2> const pieces{std::as_bytes(std::span(head)), body};
    auto const moved = co_await write_tls(pieces);
    co_return moved;
  }
  std::size_t sent = 0;
  bool has_waited = false;
  while (!head.empty() || !body.empty()) {
    auto const some = at_most(body, sent_at_once);
    co_await wait_for_turn(socket_.get_executor(), some.size());
    if (expired_) co_return Moved{sent, HttpErrc::timed_out};
    begin_waiting();
    auto [error, bytes] = send_now(socket_, head, some);
    if (error == asio::error::would_block) {
      error = co_await wait_for(TlsStream::Wait::to_write);
      has_waited = true;
    }
    sent += bytes;
    if (auto const moved = end_waiting(error, bytes); moved.error) co_return Moved{sent, moved.error};
    auto const of_head = std::min(bytes, head.size());
    head.remove_prefix(of_head);
    body = body.subspan(bytes - of_head);
  }
  if (!has_waited) co_await asio::post(asio::use_awaitable);  // like every operation of a socket
  co_return Moved{sent, {}};
}

std::size_t Wire::write_now(std::string_view head, std::span<std::byte const> body) {
  if (tls_ || expired_) return 0;
  return send_now(socket_, head, at_most(body, sent_at_once)).bytes;  // the next write meets the same error
}

asio::awaitable<Wire::Moved> Wire::secure(std::unique_ptr<TlsStream> stream) {
  boost::system::error_code error;
  socket_.native_non_blocking(true, error);
  tls_ = std::move(stream);
  for (;;) {
    if (expired_) co_return Moved{0, HttpErrc::timed_out};
    begin_waiting();
    auto const moved = tls_->handshake();
    error = moved.error;
    if (moved.wait != TlsStream::Wait::nothing) error = co_await wait_for(moved.wait);
    auto const ended = end_waiting(error, 0);
    if (ended.error || moved.wait == TlsStream::Wait::nothing) co_return ended;
  }
}

asio::awaitable<boost::system::error_code> Wire::wait_for(TlsStream::Wait what) {
  bool const writes = what == TlsStream::Wait::to_write;
  if (writes) untaken_then_ = untaken_ = unacknowledged_bytes();
  auto const readiness = writes ? asio::ip::tcp::socket::wait_write : asio::ip::tcp::socket::wait_read;
  auto const [error] = co_await socket_.async_wait(readiness, tuple_awaitable);
  co_return error;
}

asio::awaitable<Wire::Moved> Wire::read_tls(std::span<std::byte> destination) {
  for (;;) {
    if (expired_) co_return Moved{0, HttpErrc::timed_out};
    begin_waiting();
    auto const moved = tls_->read(destination);
    auto error = moved.error;
    if (moved.wait != TlsStream::Wait::nothing) error = co_await wait_for(moved.wait);
    anything_received_ |= moved.bytes > 0;
    auto const ended = end_waiting(error, moved.bytes);
    if (ended.error || moved.bytes > 0) co_return ended;
  }
}

asio::awaitable<Wire::Moved> Wire::write_tls(std::array<std::span<std::byte const>, 2> pieces) {
  std::size_t sent = 0;
  bool has_waited = false;
  for (bool is_flushed = false; !is_flushed;) {
    if (expired_) co_return Moved{sent, HttpErrc::timed_out};
    auto const some = at_most(pieces[1], sent_at_once);
    co_await wait_for_turn(socket_.get_executor(), some.size());
    begin_waiting();
    auto const moved = tls_->write(std::array{pieces[0], some});
    auto error = moved.error;
    if (moved.wait != TlsStream::Wait::nothing) {
      error = co_await wait_for(moved.wait);
      has_waited = true;
    }
    sent += moved.bytes;
    auto const ended = end_waiting(error, moved.bytes);
    if (ended.error) co_return Moved{sent, ended.error};
    auto const of_first = std::min(moved.bytes, pieces[0].size());
    pieces[0] = pieces[0].subspan(of_first);
    pieces[1] = pieces[1].subspan(moved.bytes - of_first);
    is_flushed = pieces[0].empty() && pieces[1].empty() && moved.wait == TlsStream::Wait::nothing;
    if (!is_flushed) co_await give_way(moved.bytes);
  }
  // A client that sends its requests without pause would otherwise keep the thread to itself.
  if (!has_waited) co_await asio::post(asio::use_awaitable);
  co_return Moved{sent, {}};
}

// Lets other work of the thread run. Without TLS every operation ends in the thread's queue; with TLS many operations
// in a row may complete without waiting.
asio::awaitable<void> Wire::give_way(std::size_t bytes) {
  in_a_row_bytes_ += bytes;
  if (in_a_row_bytes_ < sent_at_once) co_return;
  in_a_row_bytes_ = 0;
  co_await asio::post(asio::use_awaitable);
}

void Wire::begin_waiting() {
  waiting_since_ = std::chrono::steady_clock::now();
  untaken_ = 0;
  deadline_ = patience_.until;
  if (patience_.stall.count() > 0) deadline_ = std::min(deadline_, waiting_since_ + patience_.stall);
}

Wire::Moved Wire::end_waiting(boost::system::error_code error, std::size_t bytes) {
  deadline_ = TimePoint::max();
  if (error) {
    reason_ = error;
    return {bytes, expired_ ? HttpErrc::timed_out : HttpErrc::peer_closed};
  }
  waited_ += std::chrono::steady_clock::now() - waiting_since_;
  moved_bytes_ += bytes;
  auto const seconds = std::chrono::duration<double>(waited_).count();
  if (patience_.stall.count() > 0 && waited_ > patience_.stall &&
      static_cast<double>(moved_bytes_) < seconds * static_cast<double>(patience_.bytes_per_second_min))
    return {bytes, HttpErrc::timed_out};
  return {bytes, {}};
}

void Wire::expire() {
  expired_ = true;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Wire::expire_if_late(TimePoint now) {
  if (now >= deadline_ && !is_still_taken(now)) expire();
}

// The system lets nothing be written before a third of its buffer, which may be megabytes, has been taken. A slow
// reader is not a silent one: the bytes that it has acknowledged meanwhile count.
bool Wire::is_still_taken(TimePoint now) {
  if (now >= patience_.until || untaken_ == 0) return false;
  auto const before = std::exchange(untaken_, unacknowledged_bytes());
  auto const seconds = std::chrono::duration<double>(now - waiting_since_).count();
  auto const least = seconds * static_cast<double>(patience_.bytes_per_second_min);
  if (untaken_ >= before || static_cast<double>(untaken_then_ - untaken_) < least) return false;
  moved_bytes_ += before - untaken_;
  deadline_ = std::min(patience_.until, now + patience_.stall);
  return true;
}

bool Wire::at_end() const { return reason_ == asio::error::eof; }

bool Wire::cancelled() const {
  return reason_ == asio::error::operation_aborted || reason_ == asio::error::bad_descriptor;
}

Wire::Peer Wire::peer() const {
  pollfd ready{const_cast<asio::ip::tcp::socket&>(socket_).native_handle(), POLLRDHUP, 0};
  if (!socket_.is_open() || ::poll(&ready, 1, 0) <= 0) return Peer::stays;
  return (ready.revents & POLLERR) != 0 ? Peer::has_reset : Peer::has_closed;
}

std::size_t Wire::unacknowledged_bytes() const {
  int bytes = 0;
  auto const socket = const_cast<asio::ip::tcp::socket&>(socket_).native_handle();
  bool const is_known = socket_.is_open() && ::ioctl(socket, SIOCOUTQ, &bytes) == 0;
  return is_known ? static_cast<std::size_t>(bytes) : SIZE_MAX;
}

bool Wire::is_acknowledged() const {
  return unacknowledged_bytes() <= (ended_sending_ ? 1 : 0);  // the end of sending counts as a byte
}

boost::system::error_code Wire::end_sending() {
  boost::system::error_code error;
  if (tls_) tls_->close_notify();
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  ended_sending_ = true;
  return error;
}

std::string Wire::reason() const {
  if (at_end()) return "connection closed by peer";
  if (cancelled()) return "cancelled";
  if (tls_ && !tls_->why().empty()) return tls_->why();
  auto text = reason_.message();
  if (!text.empty()) text.front() = to_lower(text.front());
  return text;
}

void Wire::close() {
  if (tls_ && socket_.is_open()) tls_->close_notify();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace chorus::http
