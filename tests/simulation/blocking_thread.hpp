// A thread of a host for calls that block, such as those of the journal's thread. Virtual time goes on while the thread
// waits.
//
// This thread and the machine's thread take turns: only one of them runs at a time, so that a seed replays.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace chorus::simulation {

using TimePoint = std::chrono::steady_clock::time_point;

class BlockingThread {
 public:
  BlockingThread();
  ~BlockingThread();  // call only if is_idle()
  BlockingThread(BlockingThread const&) = delete;
  BlockingThread& operator=(BlockingThread const&) = delete;

  // Executor of this thread. Work runs in the order of its submission.
  [[nodiscard]] boost::asio::any_io_executor executor() { return io_.get_executor(); }

  // Called by the machine: returns when this thread waits or has no work.
  void go_on();
  // Returns the time until which this thread waits.
  [[nodiscard]] TimePoint wake() const { return wake_; }
  // Called by the machine: lets this thread run, and returns true if all its work has ended.
  [[nodiscard]] bool is_idle();

  // True on this thread.
  [[nodiscard]] bool is_here() const { return std::this_thread::get_id() == thread_.get_id(); }
  // Called on this thread: returns when the machine lets it go on, which may be before `wake`.
  void wait(TimePoint wake);

 private:
  enum class Turn : std::uint8_t { machine, thread };

  void run();
  void pass(Turn to);
  void await(Turn own);

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> const work_;
  boost::asio::steady_timer const timer_;
  std::mutex mutex_;
  std::condition_variable passed_;
  Turn turn_ = Turn::machine;
  TimePoint wake_ = TimePoint::max();
  std::thread thread_;
};

}  // namespace chorus::simulation
