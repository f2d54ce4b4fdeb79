// One TCP connection, plain or with TLS, with a read buffer and a deadline: the part that the server's sessions and the
// client's connections share.
//
// No timer is armed per read. The owner of a wire calls expire_if_late() from time to time, or expire() once.
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

#include "http/message/message.hpp"
#include "http/tls/stream.hpp"
#include "http/wire/errc.hpp"

namespace chorus::http {

// Time limits for the other side.
struct Patience {
  TimePoint until = TimePoint::max();           // limit of the whole wait
  std::chrono::steady_clock::duration stall{};  // the longest pause; 0: no limit
  std::uint64_t bytes_per_second_min = 0;       // average rate that is required after `stall` has been waited in total
};

class Wire {
 public:
  // The wire receives at most `buffer_bytes` ahead of what was asked for.
  Wire(boost::asio::ip::tcp::socket socket, std::size_t buffer_bytes);

  struct Moved {
    std::size_t bytes = 0;
    std::error_code error;  // HttpErrc timed_out, peer_closed, too_large (the buffer is full)
  };

  // Performs the handshake; all later bytes go through this stream, which uses this socket.
  boost::asio::awaitable<Moved> secure(std::unique_ptr<TlsStream> stream);
  [[nodiscard]] TlsStream* tls() { return tls_.get(); }
  // Releases the stream to the object that takes over the socket. The wire is plain afterwards.
  [[nodiscard]] std::unique_ptr<TlsStream> release_tls() { return std::move(tls_); }

  // Begins a new period of waiting: time and bytes of the previous one are forgotten.
  void set_patience(Patience patience);

  // Bytes that were received and not consumed.
  [[nodiscard]] std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes);

  // Receives at least one byte into the buffer.
  boost::asio::awaitable<Moved> receive();
  // Moves what has already arrived into the buffer, as far as it fits, without waiting. The next operation reports an
  // error.
  void receive_now();
  // Reads at least one byte, from the buffer if it is not empty, otherwise from the socket straight into the
  // destination.
  boost::asio::awaitable<Moved> read_some(std::span<std::byte> destination);
  // Sends head and body, gathered if the connection is plain.
  boost::asio::awaitable<Moved> write(std::string_view head, std::span<std::byte const> body);
  // Sends the part of both that can be sent without waiting, and returns its size. Sends nothing on a connection with
  // TLS.
  [[nodiscard]] std::size_t write_now(std::string_view head, std::span<std::byte const> body);

  // Ends the current operation, and every later one until the next set_patience(), with timed_out.
  void expire();
  void expire_if_late(TimePoint now);
  [[nodiscard]] bool expired() const { return expired_; }

  [[nodiscard]] bool anything_received() const { return anything_received_; }  // since forget_received()
  void forget_received() { anything_received_ = false; }
  [[nodiscard]] bool at_end() const;     // the last operation failed because the peer had closed in good order
  [[nodiscard]] bool cancelled() const;  // the last operation failed because it was cancelled or the wire closed here
  // State of the peer's end, even if no operation has noticed it yet.
  enum class Peer : std::uint8_t { stays, has_closed, has_reset };
  [[nodiscard]] Peer peer() const;
  // True if the peer's system has received everything that was sent. A peer that closes after that has read it, or
  // resets.
  [[nodiscard]] bool is_acknowledged() const;
  // Shuts down the sending direction.
  boost::system::error_code end_sending();
  // Message of the system for the last failed operation, for people: "connection reset by peer".
  [[nodiscard]] std::string reason() const;

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return socket_; }
  void close();

 private:
  [[nodiscard]] std::span<std::byte> room();  // free part of the buffer
  boost::asio::awaitable<Moved> read_tls(std::span<std::byte> destination);
  boost::asio::awaitable<Moved> write_tls(std::array<std::span<std::byte const>, 2> pieces);
  boost::asio::awaitable<void> give_way(std::size_t bytes);
  boost::asio::awaitable<boost::system::error_code> wait_for(TlsStream::Wait what);
  // Bytes that were written and that the peer's system has not received yet; SIZE_MAX if that is unknown.
  [[nodiscard]] std::size_t unacknowledged_bytes() const;
  [[nodiscard]] bool is_still_taken(TimePoint now);
  void begin_waiting();
  Moved end_waiting(boost::system::error_code error, std::size_t bytes);

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsStream> tls_;  // null: plain
  std::unique_ptr<char[]> buffer_;
  std::size_t buffer_bytes_;
  std::size_t begin_ = 0, end_ = 0;

  Patience patience_;
  TimePoint deadline_ = TimePoint::max();  // of the current operation
  TimePoint waiting_since_{};
  std::chrono::steady_clock::duration waited_{};
  std::uint64_t moved_bytes_ = 0;
  // Unacknowledged bytes when the current wait for room to write began, and when it was last found late; 0: another
  // wait.
  std::size_t untaken_then_ = 0, untaken_ = 0;
  bool expired_ = false;
  std::size_t in_a_row_bytes_ = 0;  // bytes moved through TLS since other work of the thread could run
  bool anything_received_ = false;
  bool ended_sending_ = false;
  boost::system::error_code reason_;
};

}  // namespace chorus::http
