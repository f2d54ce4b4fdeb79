// A server with a few simple routes, in its own thread, for the tests of server and client.
#pragma once

#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/server.hpp"

namespace chorus::http::testing {

struct Seen {
  Method method;
  std::string route;
  unsigned status;
};

// Bytes that repeat nowhere near: position i is recognisable.
[[nodiscard]] std::vector<std::byte> pattern(std::size_t bytes);

// Routes: GET /hello, PUT /echo (up to 1 MiB), PUT /exactly/{bytes} (echoes so many), PUT /store (keeps the body, any
// size), GET /payload/{bytes} (the pattern), PUT /ignore (204, reads nothing), PUT /refuse (409, reads nothing), GET
// /throw, GET /stream/{pieces} (text that comes about in so many pieces; 0: without end; ?length= says that it has so
// many bytes), GET /wait (until cancelled), GET /upgrade, GET /inject (a field with CR LF).
class LiveServer {
 public:
  explicit LiveServer(ServerLimits limits = {}, Door door = {});
  ~LiveServer();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(std::string const& path) const;
  [[nodiscard]] std::size_t open_connections();
  // Asks the server again and again, for at most ten seconds.
  [[nodiscard]] bool wait_for_connections(std::size_t count);
  [[nodiscard]] std::vector<Seen> seen();
  [[nodiscard]] bool wait_until_seen(std::size_t exchanges);
  [[nodiscard]] std::vector<std::byte> take_stored();
  // Returns when a request waits in GET /wait.
  [[nodiscard]] bool wait_for_waiting(std::size_t requests);
  [[nodiscard]] bool wait_for_the_end_of_streams();
  [[nodiscard]] std::size_t connections_used();  // peers that were ever seen by a handler
  std::function<void()> on_wait;                 // called on the server's thread when GET /wait begins

  void stop();  // returns when every session has ended

 private:
  boost::asio::awaitable<Response> hello(Request const& request, Body& body);
  boost::asio::awaitable<Response> echo(Request const& request, Body& body);
  boost::asio::awaitable<Response> exactly(Request const& request, Body& body);
  boost::asio::awaitable<Response> store(Request const& request, Body& body);
  boost::asio::awaitable<Response> payload(Request const& request, Body& body);
  boost::asio::awaitable<Response> ignore(Request const& request, Body& body);
  boost::asio::awaitable<Response> refuse(Request const& request, Body& body);
  boost::asio::awaitable<Response> fail(Request const& request, Body& body);
  boost::asio::awaitable<Response> stream(Request const& request, Body& body);
  boost::asio::awaitable<std::string> piece(std::shared_ptr<std::size_t> left, bool endless);
  boost::asio::awaitable<Response> wait(Request const& request, Body& body);
  boost::asio::awaitable<Response> upgrade(Request const& request, Body& body);
  boost::asio::awaitable<Response> inject(Request const& request, Body& body);
  void add(Method method, std::string_view pattern,
           boost::asio::awaitable<Response> (LiveServer::*handler)(Request const&, Body&));
  void note_peer(Request const& request);

  std::string const scheme_;
  boost::asio::io_context io_{1};
  Router router_;
  Server server_;
  std::uint16_t port_ = 0;
  bool stopped_ = false;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Seen> seen_;
  std::vector<std::string> peers_;
  std::vector<std::byte> stored_;
  std::size_t waiting_ = 0;
  std::weak_ptr<std::size_t> stream_;  // the last one; touched on the server's thread
  std::thread thread_;
};

}  // namespace chorus::http::testing
