#include "http/client/resolve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "http/wire/errc.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Shared by the caller and the lookup; the later one destroys it.
struct Lookup {
  explicit Lookup(asio::any_io_executor const& executor, TimePoint deadline)
      : resolver(executor), ended(executor, deadline) {}
  tcp::resolver resolver;
  asio::steady_timer ended;  // cancelled by the answer
  bool answered = false;
  boost::system::error_code error;
  std::vector<tcp::endpoint> endpoints;
};

}  // namespace

asio::awaitable<Result<std::vector<tcp::endpoint>>> resolve(std::string host, std::uint16_t port, TimePoint deadline) {
  boost::system::error_code not_numeric;
  auto const address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) co_return std::vector{tcp::endpoint(address, port)};

  auto const lookup = std::make_shared<Lookup>(co_await asio::this_coro::executor, deadline);
  lookup->resolver.async_resolve(
      host, std::to_string(port),
      [lookup](boost::system::error_code const& error, tcp::resolver::results_type const& results) {
        lookup->answered = true;
        lookup->error = error;
        for (auto const& entry : results) lookup->endpoints.push_back(entry.endpoint());
        lookup->ended.cancel();
      });
  co_await lookup->ended.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!lookup->answered) {
    lookup->resolver.cancel();
    co_return Error(HttpErrc::timed_out, "the name was not resolved in time");
  }
  if (lookup->error) co_return Error(HttpErrc::no_way, "cannot resolve the name: " + lookup->error.message());
  co_return std::move(lookup->endpoints);
}

}  // namespace chorus::http
