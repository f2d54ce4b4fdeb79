// Pauses of coroutines. A cancelled pause ends with operation_aborted.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace chorus::http {

inline boost::asio::awaitable<void> pause_until(std::chrono::steady_clock::time_point end) {
  if (end <= std::chrono::steady_clock::now()) co_return;
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, end);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

inline boost::asio::awaitable<void> pause(std::chrono::steady_clock::duration duration) {
  return pause_until(std::chrono::steady_clock::now() + duration);
}

}  // namespace chorus::http
