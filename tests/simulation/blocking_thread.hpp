// The thread of a host on which calls block, as the journal's thread waits for a store. Virtual time goes on while it
// waits.
//
// It and the machine's thread take turns: one of them runs at a time, so that a seed replays.
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
  ~BlockingThread();  // once is_idle()
  BlockingThread(BlockingThread const&) = delete;
  BlockingThread& operator=(BlockingThread const&) = delete;

  // Runs what it is given on this thread, one after the other.
  [[nodiscard]] boost::asio::any_io_executor executor() { return io_.get_executor(); }

  // Called by the machine: returns when this thread waits, or has nothing to do.
  void go_on();
  // The time until which it waits.
  [[nodiscard]] TimePoint wake() const { return wake_; }
  // Called by the machine: goes on, and tells if everything that it was given has ended.
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
