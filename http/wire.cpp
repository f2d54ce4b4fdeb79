#include "http/wire.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

#include "http/ascii.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

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

asio::awaitable<Wire::Moved> Wire::receive() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(buffer_bytes_);
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (end_ == buffer_bytes_) co_return Moved{0, HttpErrc::too_large};
  if (expired_) co_return Moved{0, HttpErrc::timed_out};
  begin_waiting();
  auto const [error, bytes] =
      co_await socket_.async_read_some(asio::buffer(buffer_.get() + end_, buffer_bytes_ - end_), tuple_awaitable);
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
  begin_waiting();
  auto const [error, bytes] =
      co_await socket_.async_read_some(asio::buffer(destination.data(), destination.size()), tuple_awaitable);
  anything_received_ |= bytes > 0;
  co_return end_waiting(error, bytes);
}

asio::awaitable<Wire::Moved> Wire::write(std::string_view head, std::span<std::byte const> body) {
  std::size_t sent = 0;
  while (!head.empty() || !body.empty()) {
    std::array const both{asio::const_buffer(head.data(), head.size()), asio::const_buffer(body.data(), body.size())};
    if (expired_) co_return Moved{sent, HttpErrc::timed_out};
    begin_waiting();
    auto const [error, bytes] = co_await socket_.async_write_some(both, tuple_awaitable);
    sent += bytes;
    if (auto const moved = end_waiting(error, bytes); moved.error) co_return Moved{sent, moved.error};
    auto const of_head = std::min(bytes, head.size());
    head.remove_prefix(of_head);
    body = body.subspan(bytes - of_head);
  }
  co_return Moved{sent, {}};
}

void Wire::begin_waiting() {
  waiting_since_ = std::chrono::steady_clock::now();
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
  if (now >= deadline_) expire();
}

bool Wire::at_end() const { return reason_ == asio::error::eof; }

bool Wire::cancelled() const {
  return reason_ == asio::error::operation_aborted || reason_ == asio::error::bad_descriptor;
}

std::string Wire::reason() const {
  if (at_end()) return "connection closed by peer";
  if (cancelled()) return "cancelled";
  auto text = reason_.message();
  if (!text.empty()) text.front() = to_lower(text.front());
  return text;
}

void Wire::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace chorus::http
