// Condition and TaskGroup.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"

using namespace chorus::http;
namespace asio = boost::asio;

namespace {

using Deadline = Condition::TimePoint;

asio::awaitable<void> count_when_notified(Condition& condition, bool const& ready, int& count) {
  while (!ready) co_await condition.wait_until(Deadline::max());
  ++count;
}

asio::awaitable<void> notify(Condition& condition, bool& ready) {
  ready = true;
  condition.notify_all();
  co_return;
}

asio::awaitable<void> wait_until(Condition& condition, Deadline deadline, bool& returned) {
  co_await condition.wait_until(deadline);
  returned = true;
}

asio::awaitable<void> wait_for_ever(Condition& condition, int& begun, int& resumed) {
  ++begun;
  for (;;) {
    co_await condition.wait_until(Deadline::max());
    ++resumed;
  }
}

asio::awaitable<void> join(TaskGroup& group, bool& joined) {
  co_await group.join();
  joined = true;
}

asio::awaitable<void> cancel_and_join(TaskGroup& group, bool& joined) {
  group.cancel();
  co_await group.join();
  joined = true;
}

}  // namespace

TEST_CASE("a notification wakes all coroutines that wait, and none that waits later") {
  asio::io_context io{1};
  TaskGroup group(io.get_executor());
  Condition condition(io.get_executor());
  bool ready = false, joined = false;
  int count = 0;
  for (int i = 0; i < 3; ++i) group.spawn("waiter", count_when_notified(condition, ready, count));
  group.spawn("notifier", notify(condition, ready));
  asio::co_spawn(io, join(group, joined), [](std::exception_ptr) {});
  io.run();
  CHECK(count == 3);
  CHECK(joined);
  CHECK(group.size() == 0);
}

TEST_CASE("a wait ends at its deadline") {
  asio::io_context io{1};
  TaskGroup group(io.get_executor());
  Condition condition(io.get_executor());
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
  bool returned = false, joined = false;
  group.spawn("waiter", wait_until(condition, deadline, returned));
  asio::co_spawn(io, join(group, joined), [](std::exception_ptr) {});
  io.run();
  CHECK(returned);
  CHECK(std::chrono::steady_clock::now() >= deadline);
}

TEST_CASE("a cancelled group ends, with the tasks that come after") {
  asio::io_context io{1};
  TaskGroup group(io.get_executor());
  Condition condition(io.get_executor());
  int begun = 0, resumed = 0;
  for (int i = 0; i < 5; ++i) group.spawn("waiter", wait_for_ever(condition, begun, resumed));
  io.poll();
  CHECK(begun == 5);
  bool joined = false;
  asio::co_spawn(io, cancel_and_join(group, joined), [](std::exception_ptr) {});
  io.poll();
  CHECK(joined);
  group.spawn("late", wait_for_ever(condition, begun, resumed));
  CHECK(group.size() == 1);
  joined = false;
  asio::co_spawn(io, join(group, joined), [](std::exception_ptr) {});
  io.restart();
  io.run();
  CHECK(joined);
}
