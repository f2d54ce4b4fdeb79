// Runs a story, a coroutine, on this thread.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <utility>

namespace chorus::parameters::testing {

// Returns when the story has ended.
inline void run_story(boost::asio::io_context& io, boost::asio::awaitable<void> story) {
  bool is_over = false;
  boost::asio::co_spawn(io, std::move(story), [&is_over](std::exception_ptr failed) {
    CHECK(failed == nullptr);
    is_over = true;
  });
  while (!is_over) io.run_one();
}

}  // namespace chorus::parameters::testing
