#include "worker/parameters/serving/copy/slices.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <latch>
#include <vector>

using namespace chorus::parameters;

namespace {

// Returns how often each element was computed.
std::vector<int> compute(boost::asio::thread_pool& threads, std::uint64_t total, std::uint64_t each) {
  std::vector<int> times(total);
  compute_in_slices(threads.get_executor(), total, each, [&](std::uint64_t first, std::uint64_t count) {
    for (auto i = first; i < first + count; ++i) ++times.at(i);
  });
  return times;
}

}  // namespace

TEST_CASE("every element is computed once, on any number of threads") {
  for (std::size_t const count : {1, 2, 5}) {
    boost::asio::thread_pool threads(count);
    for (std::uint64_t const total : {0, 1, 99, 100, 101, 12345})
      CHECK(compute(threads, total, 100) == std::vector<int>(total, 1));
    threads.join();
  }
}

TEST_CASE("a call does not wait for busy threads of the pool, not even on a thread of the pool") {
  boost::asio::thread_pool threads(2);
  std::latch is_over(1), has_ended(1);
  boost::asio::post(threads, [&] { is_over.wait(); });
  boost::asio::post(threads, [&] {
    CHECK(compute(threads, 1000, 10) == std::vector<int>(1000, 1));
    has_ended.count_down();
  });
  has_ended.wait();
  is_over.count_down();
  threads.join();
}

TEST_CASE("slices are computed concurrently") {
  boost::asio::thread_pool threads(1);
  std::latch both(2);
  compute_in_slices(threads.get_executor(), 2, 1, [&](std::uint64_t, std::uint64_t) { both.arrive_and_wait(); });
  threads.join();
}
