// Where work is done that blocks, or computes for long: on a thread beside the one that serves.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <utility>

namespace chorus::http {

class SideThread {
 public:
  // `instead`: without a thread, on this executor, for those who own the time; empty: on a thread.
  explicit SideThread(boost::asio::any_io_executor instead = {}) : executor_(std::move(instead)) {
    if (!executor_) executor_ = thread_.emplace(1).get_executor();
  }
  // Finishes what it was given.
  ~SideThread() {
    if (thread_) thread_->join();
  }
  SideThread(SideThread const&) = delete;
  SideThread& operator=(SideThread const&) = delete;

  [[nodiscard]] boost::asio::any_io_executor const& executor() const { return executor_; }
  // What the thread has not begun is not done any more.
  void drop() {
    if (thread_) thread_->stop();
  }

 private:
  std::optional<boost::asio::thread_pool> thread_;
  boost::asio::any_io_executor executor_;
};

}  // namespace chorus::http
