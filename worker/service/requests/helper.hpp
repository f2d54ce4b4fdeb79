// Threads for work that would block the control thread: all work whose time grows with the number of bytes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/runtime/side_thread.hpp"
#include "worker/service/requests/pending.hpp"

namespace chorus::service {

// Used on the control thread only; the control executor's context outlives the helper.
class Helper {
 public:
  // Number of concurrent pieces of work, so that a slow one delays no other.
  static constexpr std::size_t threads_default = 4;
  // Reading and writing this much takes microseconds, less than passing the work to a thread.
  static constexpr std::uint64_t at_once_bytes = 512 << 10;

  // `instead`: see SideThread.
  explicit Helper(boost::asio::any_io_executor control, boost::asio::any_io_executor instead = {},
                  std::size_t threads = threads_default)
      : control_(std::move(control)), threads_(std::move(instead), threads) {}
  ~Helper() { threads_.drop(); }  // finishes current work, drops what has not begun, joins the threads
  Helper(Helper const&) = delete;
  Helper& operator=(Helper const&) = delete;

  // Runs `work` on a helper thread and returns its result on the control thread. `work` owns what it reads, because a
  // cancelled caller does not wait for it; it is destroyed on the helper thread before the caller resumes. Pass a named
  // object: g++ 12 destroys a temporary lambda of an expression with co_await twice.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work&>> compute(Work work) {
    auto const result = start(std::move(work));
    co_return co_await result->take();
  }

  // compute() for callers that do other work meanwhile.
  template <class Work>
  [[nodiscard]] std::shared_ptr<Pending<std::invoke_result_t<Work&>>> start(Work work) {
    using Value = std::invoke_result_t<Work&>;
    auto const result = std::make_shared<Pending<Value>>(control_);
    auto run = [result, work = std::optional<Work>(std::move(work))]() mutable {
      auto value = (*work)();
      work.reset();
      Pending<Value>::resolve(result, std::move(value));
    };
    boost::asio::post(threads_.executor(), std::move(run));
    return result;
  }

 private:
  boost::asio::any_io_executor control_;
  http::SideThread threads_;
};

}  // namespace chorus::service
