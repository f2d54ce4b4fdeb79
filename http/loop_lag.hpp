// How late a thread comes to what is due: a timer that says by how much it was late.
#pragma once

#include <chrono>
#include <functional>

#include "http/task_group.hpp"

namespace chorus::http {

// On the executor's one thread.
class LoopLag {
 public:
  static constexpr std::chrono::milliseconds period{250};
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
