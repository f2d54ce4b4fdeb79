// A server with a few simple routes, on its own thread, for the tests of server and client.
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

#include "base/runtime/condition.hpp"
#include "http/message/reception.hpp"
#include "http/routing/once.hpp"
#include "http/server/server.hpp"

namespace chorus::http::testing {

struct Seen {
  Method method;
  std::string route;
  unsigned status;
};

// Bytes whose value identifies their position.
[[nodiscard]] std::vector<std::byte> pattern(std::size_t bytes);

// Routes:
// - GET /hello
// - PUT /echo (up to 1 MiB), PUT /exactly/{bytes} (echoes so many bytes), PUT /store (keeps a body of any size)
// - GET /payload/{bytes} (the pattern)
// - PUT /ignore (204, reads nothing), PUT /refuse (409, reads nothing), GET /throw
// - GET /stream/{pieces} (a stream of so many pieces; 0: without end; ?length= announces its bytes)
// - GET /silence (a stream of events, of which none comes)
// - GET /wait (until cancelled), PUT /heard (204 after answer_heard(); its reception is kept)
// - POST /once (like /heard, with an Idempotency-Key)
// - GET /upgrade, GET /inject (a field with CR LF)
class LiveServer {
 public:
  explicit LiveServer(ServerLimits limits = {}, Door door = {});
  ~LiveServer();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(std::string const& path) const;
  [[nodiscard]] std::size_t open_connections();
  // Polls the server for at most ten seconds.
  [[nodiscard]] bool wait_for_connections(std::size_t count);
  [[nodiscard]] std::vector<Seen> seen();
  [[nodiscard]] bool wait_until_seen(std::size_t exchanges);
  [[nodiscard]] std::vector<std::byte> take_stored();
  // Returns when so many requests wait in GET /wait, GET /silence or PUT /heard.
  [[nodiscard]] bool wait_for_waiting(std::size_t requests);
  [[nodiscard]] bool wait_for_the_end_of_streams();
  void answer_heard();  // answers the requests that wait in PUT /heard
  // State of the n-th request to PUT /heard.
  [[nodiscard]] Reception::State reception(std::size_t request);
  [[nodiscard]] std::size_t connections_used();  // different peers that handlers have seen
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
  boost::asio::awaitable<Response> silence(Request const& request, Body& body);
  boost::asio::awaitable<std::string> no_event(std::shared_ptr<std::size_t> stream);
  boost::asio::awaitable<Response> wait(Request const& request, Body& body);
  boost::asio::awaitable<Response> heard(Request const& request, Body& body);
  boost::asio::awaitable<Response> upgrade(Request const& request, Body& body);
  boost::asio::awaitable<Response> inject(Request const& request, Body& body);
  void add(Method method, std::string_view pattern,
           boost::asio::awaitable<Response> (LiveServer::*handler)(Request const&, Body&));
  void note_peer(Request const& request);
  void note_waiting();

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
  // Used on the server's thread.
  std::weak_ptr<std::size_t> stream_;  // the last stream
  std::vector<std::shared_ptr<Reception>> receptions_;
  Condition answers_{io_.get_executor()};
  Once once_{io_.get_executor()};
  std::thread thread_;
};

}  // namespace chorus::http::testing
