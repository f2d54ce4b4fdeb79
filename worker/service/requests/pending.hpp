// A value that another thread sets once, for a waiting coroutine of the control thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/runtime/condition.hpp"

namespace chorus::service {

// Shared by both sides, so a cancelled waiter leaves nothing dangling.
template <class T>
class Pending {
 public:
  explicit Pending(boost::asio::any_io_executor control) : control_(control), resolved_(std::move(control)) {}
  Pending(Pending const&) = delete;
  Pending& operator=(Pending const&) = delete;

  // Any thread, once.
  static void resolve(std::shared_ptr<Pending> const& pending, T value) {
    boost::asio::post(pending->control_, [pending, value = std::move(value)]() mutable {
      pending->value_ = std::move(value);
      pending->resolved_.notify_all();
    });
  }

  // Call once, on the control thread. The caller keeps the Pending alive.
  boost::asio::awaitable<T> take() {
    while (!value_) co_await resolved_.wait_until(http::Condition::TimePoint::max());
    co_return std::move(*value_);
  }

 private:
  boost::asio::any_io_executor control_;
  http::Condition resolved_;
  std::optional<T> value_;
};

}  // namespace chorus::service
