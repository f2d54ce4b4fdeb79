#include "http/wire/wire.hpp"

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "base/runtime/task_group.hpp"

namespace asio = boost::asio;
using asio::ip::tcp;
using chorus::http::Wire;

namespace {

constexpr std::size_t body_bytes = 1 << 20, bytes_at_once = 256 << 10, connections = 8;

// Counts the turns of a loop: its handler is run once in each.
struct Turns {
  asio::io_context& io;
  std::size_t count = 0;
  bool is_over = false;

  void operator()() {
    ++count;
    if (!is_over) asio::post(io, [this] { (*this)(); });
  }
};

asio::awaitable<void> send(Wire& wire, std::vector<std::byte> const& body, std::size_t& pending, Turns& turns) {
  auto const moved = co_await wire.write("head", body);
  CHECK(moved.bytes == body.size() + 4);
  turns.is_over = --pending == 0;
}

}  // namespace

TEST_CASE("the connections of a thread send large bodies in turns, so that other work waits for one of them") {
  asio::io_context io, peer_io;
  tcp::acceptor acceptor(peer_io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<tcp::socket> peers;
  for (std::size_t i = 0; i < connections; ++i) {
    tcp::socket socket(io);
    socket.connect(acceptor.local_endpoint());
    wires.push_back(std::make_unique<Wire>(std::move(socket), 4096));
    peers.push_back(acceptor.accept());
  }
  std::vector<std::byte> const body(body_bytes, std::byte{7});
  std::vector<std::thread> readers;
  for (auto& peer : peers)
    readers.emplace_back([&peer] {
      std::vector<char> received(body_bytes + 4);
      boost::system::error_code error;
      CHECK(asio::read(peer, asio::buffer(received), error) == received.size());
      CHECK(received.back() == 7);
    });
  Turns turns{io};
  std::size_t pending = connections;
  chorus::http::TaskGroup tasks(io.get_executor());
  for (auto const& wire : wires) tasks.spawn("send", send(*wire, body, pending, turns));
  turns();
  io.run();
  for (auto& reader : readers) reader.join();
  // Each turn sends one part at most.
  CHECK(turns.count >= connections * body_bytes / bytes_at_once);
}
