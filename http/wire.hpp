// One TCP connection, plain or with TLS, with a read buffer and a deadline: what a session and the client's connections
// have in common.
//
// No timer is armed per read. Whoever owns wires calls expire_if_late() now and then, or expire() once.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http/errc.hpp"
#include "http/message.hpp"
#include "http/tls/stream.hpp"

namespace chorus::http {

// How long the other side may take.
struct Patience {
  TimePoint until = TimePoint::max();           // for everything
  std::chrono::steady_clock::duration stall{};  // the longest pause, 0: any
  std::uint64_t bytes_per_second_min = 0;       // on average, once `stall` has been waited in total
};

class Wire {
 public:
  // At most `buffer_bytes` are received ahead of what was asked for.
  Wire(boost::asio::ip::tcp::socket socket, std::size_t buffer_bytes);

  struct Moved {
    std::size_t bytes = 0;
    std::error_code error;  // HttpErrc timed_out, peer_closed, too_large (the buffer is full)
  };

  // Everything goes through this stream from now on, once its handshake has succeeded. The stream is on this socket.
  boost::asio::awaitable<Moved> secure(std::unique_ptr<TlsStream> stream);
  [[nodiscard]] TlsStream* tls() { return tls_.get(); }
  // Whoever takes the socket takes this as well. What is left is plain.
  [[nodiscard]] std::unique_ptr<TlsStream> release_tls() { return std::move(tls_); }

  // Begins a new stretch of waiting: the time and bytes of the previous one are forgotten.
  void set_patience(Patience patience);

  // Received and not consumed.
  [[nodiscard]] std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes);

  // Receives at least one byte into the buffer.
  boost::asio::awaitable<Moved> receive();
  // What has arrived already goes into the buffer, as far as it fits; waits for nothing. An error is met again by the
  // operation that follows.
  void receive_now();
  // At least one byte, from the buffer if it has some, otherwise from the socket straight into the destination.
  boost::asio::awaitable<Moved> read_some(std::span<std::byte> destination);
  // Sends both, gathered, from where they lie.
  boost::asio::awaitable<Moved> write(std::string_view head, std::span<std::byte const> body);
  // The part of both that can be sent without waiting; its bytes. None of a connection with TLS.
  [[nodiscard]] std::size_t write_now(std::string_view head, std::span<std::byte const> body);

  // Ends the operation that waits, and every later one until the next set_patience, with timed_out.
  void expire();
  void expire_if_late(TimePoint now);
  [[nodiscard]] bool expired() const { return expired_; }

  [[nodiscard]] bool anything_received() const { return anything_received_; }  // since forget_received()
  void forget_received() { anything_received_ = false; }
  [[nodiscard]] bool at_end() const;     // the last operation failed because the peer had closed in good order
  [[nodiscard]] bool cancelled() const;  // the last operation failed because it was cancelled or the wire closed here
  // What the system said when the last operation failed, for people: "connection reset by peer".
  [[nodiscard]] std::string reason() const;

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return socket_; }
  void close();

 private:
  [[nodiscard]] std::span<std::byte> room();  // of the buffer, behind what is in it
  boost::asio::awaitable<Moved> read_tls(std::span<std::byte> destination);
  boost::asio::awaitable<Moved> write_tls(std::array<std::span<std::byte const>, 2> pieces);
  boost::asio::awaitable<boost::system::error_code> wait_for(TlsStream::Wait what);
  void begin_waiting();
  Moved end_waiting(boost::system::error_code error, std::size_t bytes);

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsStream> tls_;  // null: plain
  std::unique_ptr<char[]> buffer_;
  std::size_t buffer_bytes_;
  std::size_t begin_ = 0, end_ = 0;

  Patience patience_;
  TimePoint deadline_ = TimePoint::max();  // of the operation that waits
  TimePoint waiting_since_{};
  std::chrono::steady_clock::duration waited_{};
  std::uint64_t moved_bytes_ = 0;
  bool expired_ = false;
  bool anything_received_ = false;
  boost::system::error_code reason_;
};

}  // namespace chorus::http
