// Many workers whose coordinator is gone, overloaded, and then replaced by one that does not know them. Two hundred
// real agents run in this process; the coordinator is the real program.
#include <doctest/doctest.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <iostream>
#include <mutex>
#include <thread>

#include "http/server/server.hpp"
#include "tests/support/fleets/cluster.hpp"
#include "tests/support/held_port.hpp"
#include "worker/service/cluster/agent.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace asio = boost::asio;
namespace http = chorus::http;

namespace {

constexpr std::size_t agents_count = 200;

asio::awaitable<http::Response> answer_probe(http::Request const&, http::Body&) {
  co_return http::Response::text(200, "ok\n");
}

asio::awaitable<http::Response> refuse(http::Request const&, http::Body&) {
  co_return http::Problem(http::ProblemCode::unavailable, "too many knock at once");
}

// An HTTP server on a thread's executor, from construction to end().
class Endpoint {
 public:
  Endpoint(asio::io_context& io, std::uint16_t port, http::Observer observer)
      : io_(io), server_(io.get_executor(), router_, {}, std::move(observer)) {
    router_.add(http::Method::get, "/livez", http::Access::open, answer_probe);
    router_.add(http::Method::post, "/v1/workers", http::Access::open, refuse);
    router_.add(http::Method::put, "/v1/workers/{id}/lease", http::Access::open, refuse);
    auto const listen = [this, port] { return server_.listen("127.0.0.1", port).value(); };
    port_ = asio::post(io_, asio::use_future(listen)).get();
  }
  void end() { asio::co_spawn(io_, server_.stop(), asio::use_future).get(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  asio::io_context& io_;
  http::Router router_;
  http::Server server_;
  std::uint16_t port_ = 0;
};

// The agents, at one address, on one thread.
class Crowd {
 public:
  explicit Crowd(std::string const& coordinator)
      : thread_([this] { io_.run(); }), client_(io_.get_executor()), address_(io_, 0, {}) {
    auto const log = std::make_shared<spdlog::logger>("none", std::make_shared<spdlog::sinks::null_sink_mt>());
    for (std::size_t i = 0; i < agents_count; ++i) {
      chorus::service::AgentOptions options;
      options.coordinator = coordinator;
      options.backoff_max = 2000ms;
      options.self.id = "a" + std::to_string(i);
      options.self.incarnation = chorus::api::to_hex(0x9e3779b97f4a7c15 * (i + 1));
      options.self.url = "http://127.0.0.1:" + std::to_string(address_.port());
      options.self.locality.host = "h0";
      options.self.version = "1";
      agents_.push_back(std::make_unique<chorus::service::Agent>(
          io_.get_executor(), client_, metrics_, log, options, [](std::string const&) {},
          [] { return std::vector<chorus::api::GroupCalls>(); }));
      asio::post(io_, [agent = agents_.back().get()] { agent->start(); });
    }
  }
  ~Crowd() {
    for (auto& agent : agents_) asio::co_spawn(io_, agent->stop({}), asio::use_future).get();
    asio::post(io_, asio::use_future([this] { client_.close(); })).get();
    address_.end();
    keeps_.reset();
    thread_.join();
  }
  Crowd(Crowd const&) = delete;
  Crowd& operator=(Crowd const&) = delete;

  [[nodiscard]] asio::io_context& io() { return io_; }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> keeps_{io_.get_executor()};
  std::thread thread_;
  http::Client client_;
  chorus::metrics::WorkerMetrics metrics_{{}, 0};
  Endpoint address_;
  std::vector<std::unique_ptr<chorus::service::Agent>> agents_;
};

// Times of join attempts.
class Knocks {
 public:
  void add() {
    std::scoped_lock const lock(mutex_);
    times_.push_back(Clock::now());
  }
  [[nodiscard]] std::size_t between(Clock::time_point from, Clock::time_point to) const {
    std::scoped_lock const lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count_if(times_, [=](Clock::time_point time) { return time >= from && time < to; }));
  }
  [[nodiscard]] Clock::time_point first() const {
    std::scoped_lock const lock(mutex_);
    return times_.empty() ? Clock::time_point::max() : times_.front();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Clock::time_point> times_;
};

std::unique_ptr<Service> start_coordinator(HeldPort const& port) {
  return std::make_unique<Service>(
      "coordinator", std::vector<std::string>{binary("chorus-coordinator"), "--port", port.text(), "--lease-ms", "1000",
                                              "--log-level", "error"});
}

bool all_are_there(Service const& coordinator) {
  return eventually([&] { return coordinator.metric("chorus_members{state=\"ready\"}") == agents_count; }, 30s);
}

}  // namespace

TEST_CASE(
    "workers try to join an overloaded coordinator less and less often, at different times, and all join its "
    "successor") {
  HeldPort const port;
  auto coordinator = start_coordinator(port);
  Crowd crowd(coordinator->url);
  REQUIRE(all_are_there(*coordinator));
  coordinator->process.signal(SIGKILL);
  coordinator->process.wait();

  Knocks knocks;
  Endpoint overloaded(crowd.io(), port.number(), [&knocks](http::Exchange const&) { knocks.add(); });
  auto const in_first_second = [&] { return knocks.between(knocks.first(), knocks.first() + 1s); };
  auto const in_last_two_seconds = [&] { return knocks.between(Clock::now() - 2s, Clock::time_point::max()); };
  REQUIRE(eventually([&] { return Clock::now() - 4s > knocks.first(); }, 20s));
  CHECK(eventually([&] { return in_last_two_seconds() * 4 < in_first_second(); }, 20s));
  auto const end = Clock::now();
  std::size_t most = 0;
  for (auto from = end - 2s; from < end; from += 100ms) most = std::max(most, knocks.between(from, from + 100ms));
  std::cout << agents_count << " workers knock " << in_first_second() << " times in the first second, "
            << knocks.between(end - 2s, end) / 2 << " a second at last, at most " << most << " in a tenth of one"
            << std::endl;
  CHECK(most < agents_count);  // see backoff_test for evenness: a delayed process catches up here
  overloaded.end();

  auto const begun = Clock::now();
  coordinator = start_coordinator(port);
  CHECK(all_are_there(*coordinator));
  auto const back = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun);
  std::cout << "all are back " << back.count() << " ms after the next coordinator was started" << std::endl;
  CHECK(back < 5s);
}
