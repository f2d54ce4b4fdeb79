// Threads for work that blocks or computes for long, beside the thread that serves.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <optional>
#include <utility>

namespace chorus::http {

class SideThread {
 public:
  // If `instead` is given, work runs on that executor and there is no thread: for tests with a clock of their own.
  // Otherwise `threads` threads are started, which begin work in the order of its submission.
  explicit SideThread(boost::asio::any_io_executor instead = {}, std::size_t threads = 1)
      : executor_(std::move(instead)) {
    if (!executor_) executor_ = thread_.emplace(threads).get_executor();
  }
  // Finishes all work, then joins the threads.
  ~SideThread() { join(); }
  SideThread(SideThread const&) = delete;
  SideThread& operator=(SideThread const&) = delete;

  [[nodiscard]] boost::asio::any_io_executor const& executor() const { return executor_; }
  // Drops all work that no thread has begun.
  void drop() {
    if (thread_) thread_->stop();
  }
  // Finishes all work that was not dropped. Nothing is submitted after this.
  void join() {
    if (thread_) thread_->join();
  }

 private:
  std::optional<boost::asio::thread_pool> thread_;
  boost::asio::any_io_executor executor_;
};

}  // namespace chorus::http
