// Who runs the loop of a data plane: its own thread, or a caller that waits for its run anyway and so saves two
// switches between threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace chorus::engine {

// One holder at a time. After a caller has given the loop back the data thread leaves it alone for one to two times
// `rest`, in which the next call of a training loop takes it without waking anybody; what arrives meanwhile waits in
// sockets and queues, unless somebody nudges.
class LoopBaton {
 public:
  static constexpr std::chrono::microseconds rest{1000}, long_rest{50000};

  // interrupt: makes the data thread return from whatever it waits for in the loop; from any thread.
  explicit LoopBaton(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}

  // The data thread: waits until the loop is its own.
  void take();
  // While it is: somebody waits for it, so give() it.
  [[nodiscard]] bool is_wanted() const { return waiting_.load(std::memory_order_acquire) != 0; }
  void give();

  // A caller: false if another caller has the loop, which then serves this one's run too.
  [[nodiscard]] bool borrow();
  // work_left: the data thread goes on at once. held: for how long the caller had the loop, about.
  void give_back(bool work_left, std::chrono::nanoseconds held);

  // Any thread: there is something to do that no caller waits for.
  void nudge();

 private:
  enum class Holder { nobody, data_thread, caller };

  [[nodiscard]] bool is_free() const { return holder_ == Holder::nobody && waiting_ == 0; }

  std::function<void()> const interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Holder holder_ = Holder::nobody;
  std::atomic<unsigned> waiting_{0};  // callers
  bool nudged_ = false;
  std::uint64_t borrowed_ = 0;  // times
};

}  // namespace chorus::engine
