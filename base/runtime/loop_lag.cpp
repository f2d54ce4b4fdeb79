#include "base/runtime/loop_lag.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace chorus::http {

void LoopLag::start() { tasks_.spawn("loop lag", watch()); }

boost::asio::awaitable<void> LoopLag::watch() {
  boost::asio::steady_timer timer(executor_);
  for (;;) {
    timer.expires_after(period);
    auto const due = timer.expiry();
    co_await timer.async_wait(boost::asio::use_awaitable);
    report_(std::chrono::duration<double>(std::chrono::steady_clock::now() - due).count());
  }
}

boost::asio::awaitable<void> LoopLag::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace chorus::http
