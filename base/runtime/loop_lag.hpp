// Measures how late an event loop runs due work: a timer every `period` reports its own delay. Work that blocks the
// thread for longer than the period is always seen.
#pragma once

#include <chrono>
#include <functional>

#include "base/runtime/task_group.hpp"

namespace chorus::http {

// Used on the executor's one thread. Call stop() before it is destroyed.
class LoopLag {
 public:
  static constexpr std::chrono::milliseconds period{50};
  using Report = std::function<void(double seconds)>;

  LoopLag(boost::asio::any_io_executor executor, Report report)
      : executor_(executor), report_(std::move(report)), tasks_(std::move(executor)) {}

  void start();
  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<void> watch();

  boost::asio::any_io_executor executor_;
  Report const report_;
  TaskGroup tasks_;
};

}  // namespace chorus::http
