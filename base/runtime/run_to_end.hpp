// How a thread without an event loop of its own waits for a coroutine.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>

namespace chorus::http {

// Runs `work` to its end on the calling thread. Nobody else runs `io`. Throws what the coroutine throws.
template <class T>
T run_to_end(boost::asio::io_context& io, boost::asio::awaitable<T> work) {
  auto done = boost::asio::co_spawn(io, std::move(work), boost::asio::use_future);
  io.restart();
  while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) io.run_one();
  return done.get();
}

}  // namespace chorus::http
