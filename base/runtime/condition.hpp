// A condition variable for coroutines of one thread, which needs no lock.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <list>

namespace chorus::http {

// A notification is not remembered: check the condition, then wait, in a loop. None is lost in between, because
// everything runs on the executor's one thread. The Condition outlives its waiters.
class Condition {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Condition(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Condition(Condition const&) = delete;
  Condition& operator=(Condition const&) = delete;

  void notify_all() {
    for (auto* timer : waiting_) timer->cancel();
  }

  // Returns at the next notify_all() or at the deadline, whichever is first; TimePoint::max() waits for ever.
  boost::asio::awaitable<void> wait_until(TimePoint deadline) {
    boost::asio::steady_timer timer(executor_, deadline);
    Waiting const waiting(waiting_, timer);
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }

 private:
  using Timers = std::list<boost::asio::steady_timer*>;

  class Waiting {
   public:
    Waiting(Timers& timers, boost::asio::steady_timer& timer)
        : timers_(timers), here_(timers.insert(timers.end(), &timer)) {}
    ~Waiting() { timers_.erase(here_); }
    Waiting(Waiting const&) = delete;
    Waiting& operator=(Waiting const&) = delete;

   private:
    Timers& timers_;
    Timers::iterator here_;
  };

  boost::asio::any_io_executor executor_;
  Timers waiting_;
};

}  // namespace chorus::http
