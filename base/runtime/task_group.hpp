// Owns coroutines: none outlives its TaskGroup. To stop: cancel(), then join().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <list>
#include <string>
#include <string_view>

#include "base/runtime/condition.hpp"
#include "collectives/core/assert.hpp"

namespace chorus::http {

// One thread runs the executor and makes every call. A task must not throw, but a cancelled task may end with
// operation_aborted. Any other exception ends the process with the task's name.
class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor) : executor_(executor), ended_(std::move(executor)) {}
  ~TaskGroup() { CHORUS_ASSERT(tasks_.empty(), "a task group dies after join()"); }
  TaskGroup(TaskGroup const&) = delete;
  TaskGroup& operator=(TaskGroup const&) = delete;

  // Starts a task, at once if called on the executor's thread. After cancel() a new task is cancelled from the start.
  void spawn(std::string name, boost::asio::awaitable<void> task) {
    auto const here = tasks_.emplace(tasks_.end(), std::move(name));
    auto const slot = here->signal.slot();
    boost::asio::co_spawn(
        executor_, std::move(task),
        boost::asio::bind_cancellation_slot(slot, [this, here](std::exception_ptr failure) { end(here, failure); }));
    if (cancelled_) cancel();
  }

  // Asks every task to end: its next or present co_await fails with operation_aborted.
  void cancel() {
    cancelled_ = true;
    for (auto next = tasks_.begin(); next != tasks_.end();)
      (next++)->signal.emit(boost::asio::cancellation_type::terminal);
  }

  // Returns when no task is left; tasks spawned meanwhile are waited for too.
  boost::asio::awaitable<void> join() {
    while (!tasks_.empty()) co_await ended_.wait_until(Condition::TimePoint::max());
  }

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }

 private:
  struct Task {
    explicit Task(std::string n) : name(std::move(n)) {}
    std::string name;
    boost::asio::cancellation_signal signal;
  };

  void end(std::list<Task>::iterator task, std::exception_ptr const& failure) {
    if (failure) check_failure(task->name, failure);
    tasks_.erase(task);
    if (tasks_.empty()) ended_.notify_all();
  }

  void check_failure(std::string const& name, std::exception_ptr const& failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (boost::system::system_error const& error) {
      if (cancelled_ && error.code() == boost::asio::error::operation_aborted) return;
      assertion_failed(name.c_str(), error.what(), __FILE__, __LINE__);
    } catch (std::exception const& error) { assertion_failed(name.c_str(), error.what(), __FILE__, __LINE__); }
  }

  boost::asio::any_io_executor executor_;
  std::list<Task> tasks_;
  bool cancelled_ = false;
  Condition ended_;
};

}  // namespace chorus::http
