#include "http/server/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <utility>

#include "base/runtime/socket_options.hpp"
#include "collectives/core/assert.hpp"
#include "http/server/session.hpp"
#include "http/tls/errc.hpp"
#include "http/wire/errc.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

// Number of connections above the limit that still get an answer; any more are closed without one.
constexpr std::size_t spare_max = 64;

}  // namespace

class Server::Impl {
 public:
  Impl(asio::any_io_executor executor, Router const& router, ServerLimits limits, Observer observer, Door door)
      : executor_(std::move(executor)),
        limits_(limits),
        observer_(std::move(observer)),
        context_{router, limits_, observer_, door, in_flight_, date_},
        sweep_timer_(executor_),
        all_ended_(executor_, TimePoint::max()) {}

  ~Impl() { CHORUS_ASSERT(running_ == 0, "stop() has not completed"); }

  Result<std::uint16_t> listen(std::string const& host, std::uint16_t port);
  void on_close(std::function<void(std::string const&)> closed) { closed_ = std::move(closed); }
  asio::awaitable<void> stop();
  [[nodiscard]] std::size_t open_connections() const { return sessions_.size(); }
  [[nodiscard]] std::size_t requests_in_flight() const { return in_flight_; }

 private:
  struct Entry {
    Session session;
    asio::cancellation_signal cancel;
    Entry(tcp::socket socket, SessionContext const& context, bool is_spare)
        : session(std::move(socket), context, is_spare) {}
  };

  asio::awaitable<void> accept(tcp::acceptor& acceptor);
  asio::awaitable<void> sweep();
  void admit(tcp::socket socket);
  void ended() {
    --running_;
    all_ended_.cancel();
  }

  asio::any_io_executor executor_;
  ServerLimits limits_;
  Observer observer_;
  std::size_t in_flight_ = 0;
  DateClock date_;
  std::function<void(std::string const&)> closed_;
  SessionContext context_;
  std::list<tcp::acceptor> acceptors_;
  std::string usual_congestion_control_;  // the system's, for connections from other hosts
  std::list<Entry> sessions_;
  asio::steady_timer sweep_timer_;
  asio::steady_timer all_ended_;  // never expires; cancelled whenever a coroutine has ended
  std::size_t running_ = 0;       // coroutines: accept, sweep, sessions
  bool stopping_ = false;
};

Result<std::uint16_t> Server::Impl::listen(std::string const& host, std::uint16_t port) {
  auto const failed = [&](boost::system::error_code const& error) {
    return Error(HttpErrc::bind_failed, host + ":" + std::to_string(port) + ": " + error.message());
  };
  boost::system::error_code error;
  tcp::resolver resolver(executor_);
  auto const found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error) return failed(error);
  auto chosen =
      std::find_if(found.begin(), found.end(), [](auto const& e) { return e.endpoint().protocol() == tcp::v4(); });
  auto endpoint = chosen == found.end() ? found.begin()->endpoint() : chosen->endpoint();
  if (context_.door.only_loopback && !endpoint.address().is_loopback())
    return Error(AuthErrc::not_protected,
                 host + ":" + std::to_string(port) +
                     ": others reach this address, and there is no authentication: give --auth-tokens FILE, or "
                     "--insecure-no-auth if everybody who reaches it may do everything");
  tcp::acceptor acceptor(executor_);
  acceptor.open(endpoint.protocol(), error);
  auto const is_all = endpoint.address().is_v6() && endpoint.address().is_unspecified();
  if (is_all && error == boost::system::errc::address_family_not_supported) {
    endpoint.address(asio::ip::address_v4::any());
    acceptor.open(endpoint.protocol(), error);
  } else if (is_all && !error) {
    acceptor.set_option(asio::ip::v6_only(false), error);  // the system's default may differ
  }
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) usual_congestion_control_ = prepare_to_accept(acceptor);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  auto const bound = error ? std::uint16_t(0) : acceptor.local_endpoint(error).port();
  if (error) return failed(error);

  auto const on_end = [this](std::exception_ptr) { ended(); };
  if (acceptors_.empty()) {
    ++running_;
    asio::co_spawn(executor_, sweep(), on_end);
  }
  acceptors_.push_back(std::move(acceptor));
  ++running_;
  asio::co_spawn(executor_, accept(acceptors_.back()), on_end);
  return bound;
}

asio::awaitable<void> Server::Impl::accept(tcp::acceptor& acceptor) {
  constexpr std::chrono::milliseconds pause{50};
  asio::steady_timer timer(executor_);
  bool has_complained = false;
  while (!stopping_) {
    auto [error, socket] = co_await acceptor.async_accept(tuple_awaitable);
    if (stopping_) break;
    if (!error) {
      has_complained = false;
      admit(std::move(socket));
      continue;
    }
    // The process has no descriptors left, or the peer left at once. Connections wait in the backlog meanwhile.
    if (!std::exchange(has_complained, true)) spdlog::warn("cannot accept connections at present: {}", error.message());
    timer.expires_after(pause);
    co_await timer.async_wait(tuple_awaitable);
  }
}

void Server::Impl::admit(tcp::socket socket) {
  if (sessions_.size() >= limits_.connections + spare_max) return;
  prepare_accepted(socket, usual_congestion_control_);
  auto const full = sessions_.size() >= limits_.connections;
  auto const entry = sessions_.emplace(sessions_.end(), std::move(socket), context_, full);
  ++running_;
  asio::co_spawn(executor_, entry->session.serve(),
                 asio::bind_cancellation_slot(entry->cancel.slot(), [this, entry](std::exception_ptr failure) {
                   if (failure) spdlog::error("a session ended with an exception");
                   auto const remote = entry->session.remote();
                   sessions_.erase(entry);
                   if (closed_ && !stopping_) closed_(remote);
                   ended();
                 }));
}

// One timer checks all connections, so deadlines and clients that have gone are noticed up to an eighth of the shortest
// timeout late.
asio::awaitable<void> Server::Impl::sweep() {
  using std::chrono::milliseconds;
  auto const shortest = std::min({limits_.header_timeout, limits_.idle_timeout, limits_.body_stall_timeout});
  auto const period = std::clamp(shortest / 8, milliseconds(1), milliseconds(1000));
  while (!stopping_) {
    sweep_timer_.expires_after(period);
    co_await sweep_timer_.async_wait(tuple_awaitable);
    auto const now = std::chrono::steady_clock::now();
    for (auto next = sessions_.begin(); next != sessions_.end();) {
      auto& entry = *next++;
      entry.session.expire_if_late(now);
      if (entry.session.is_deserted()) entry.cancel.emit(asio::cancellation_type::terminal);
    }
  }
}

asio::awaitable<void> Server::Impl::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  for (auto& acceptor : acceptors_) acceptor.close(ignored);
  sweep_timer_.cancel();
  for (auto next = sessions_.begin(); next != sessions_.end();)
    (next++)->cancel.emit(asio::cancellation_type::terminal);
  while (running_ > 0) co_await all_ended_.async_wait(tuple_awaitable);
}

Server::Server(asio::any_io_executor executor, Router const& router, ServerLimits limits, Observer observer, Door door)
    : impl_(std::make_unique<Impl>(std::move(executor), router, limits, std::move(observer), door)) {}

Server::~Server() = default;

Result<std::uint16_t> Server::listen(std::string const& host, std::uint16_t port) { return impl_->listen(host, port); }

void Server::on_close(std::function<void(std::string const&)> closed) { impl_->on_close(std::move(closed)); }

asio::awaitable<void> Server::stop() { return impl_->stop(); }

std::size_t Server::open_connections() const { return impl_->open_connections(); }

std::size_t Server::requests_in_flight() const { return impl_->requests_in_flight(); }

}  // namespace chorus::http
