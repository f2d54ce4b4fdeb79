#include "worker/bench/calibration/ceiling.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "base/runtime/socket_options.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t stream_bytes = std::uint64_t{2} << 30;
constexpr int round_trips = 10000;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Blocking calls of one segment each.
class Stream {
 public:
  Stream(tcp::socket& socket, std::uint64_t segment_bytes)
      : socket_(socket), outgoing_(16 * segment_bytes), incoming_(16 * segment_bytes), segment_(segment_bytes) {}

  void send_all() {
    for (std::uint64_t sent = 0; sent < stream_bytes;)
      sent += socket_.send(asio::buffer(place(outgoing_, sent), left(sent)));
  }
  void receive_all() {
    for (std::uint64_t received = 0; received < stream_bytes;)
      received += socket_.receive(asio::buffer(place(incoming_, received), left(received)));
  }
  // Sends and receives at once; the other side does the same.
  void both() {
    std::thread receiver([this] { receive_all(); });
    send_all();
    receiver.join();
  }

 private:
  [[nodiscard]] std::uint64_t left(std::uint64_t moved) const { return std::min(stream_bytes - moved, segment_); }
  [[nodiscard]] std::byte* place(std::vector<std::byte>& memory, std::uint64_t moved) const {
    return memory.data() + moved % memory.size() / segment_ * segment_;
  }

  tcp::socket& socket_;
  std::vector<std::byte> outgoing_, incoming_;
  std::uint64_t const segment_;
};

// When both sides have returned, each has received everything.
void meet(tcp::socket& socket) {
  char byte = 0;
  asio::write(socket, asio::buffer(&byte, 1));
  asio::read(socket, asio::buffer(&byte, 1));
}

}  // namespace

Result<Ceiling> measure_ceiling(std::uint64_t segment_bytes) try {
  segment_bytes = std::max<std::uint64_t>(segment_bytes, 4096);
  while (stream_bytes % segment_bytes != 0) --segment_bytes;
  asio::io_context context;
  tcp::acceptor acceptor(context, tcp::v4());
  auto const usual = http::prepare_to_accept(acceptor);
  acceptor.bind({asio::ip::address_v4::loopback(), 0});
  acceptor.listen();
  auto const child = fork();
  if (child < 0) return Error(std::error_code(errno, std::generic_category()), "fork");
  tcp::socket socket(context);
  if (child == 0) {
    http::prepare_to_connect(socket, acceptor.local_endpoint());
    socket.connect(acceptor.local_endpoint());
  } else {
    acceptor.accept(socket);
    http::prepare_accepted(socket, usual);
  }
  Stream stream(socket, segment_bytes);
  char byte = 0;
  if (child == 0) {
    for (int i = 0; i < round_trips; ++i) {
      asio::read(socket, asio::buffer(&byte, 1));
      asio::write(socket, asio::buffer(&byte, 1));
    }
    stream.receive_all();
    meet(socket);
    stream.both();
    meet(socket);
    _exit(0);
  }
  Ceiling ceiling;
  std::vector<double> trips;
  for (int i = 0; i < round_trips; ++i) {
    auto const begin = Clock::now();
    asio::write(socket, asio::buffer(&byte, 1));
    asio::read(socket, asio::buffer(&byte, 1));
    trips.push_back(seconds_since(begin));
  }
  ceiling.round_trip_us = percentile(trips, 0.5) * 1e6;
  auto begin = Clock::now();
  stream.send_all();
  meet(socket);
  ceiling.one_way_GBps = static_cast<double>(stream_bytes) / seconds_since(begin) / 1e9;
  begin = Clock::now();
  stream.both();
  meet(socket);
  ceiling.both_ways_GBps = static_cast<double>(stream_bytes) / seconds_since(begin) / 1e9;
  waitpid(child, nullptr, 0);
  return ceiling;
} catch (boost::system::system_error const& error) { return Error(error.code(), error.what()); }

}  // namespace chorus::bench
