#include "worker/parameters/serving/copy/slices.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

namespace chorus::parameters {
namespace {

constexpr std::uint64_t helpers_max = 7;

// Shared, because a thread may begin after the call has returned; it then finds that all slices are taken.
struct Work {
  std::uint64_t total;
  std::uint64_t each;
  std::function<void(std::uint64_t, std::uint64_t)> part;
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> done = 0;

  void take_slices() {
    for (;;) {
      auto const first = taken.fetch_add(each, std::memory_order_relaxed);
      if (first >= total) return;
      auto const count = std::min(each, total - first);
      part(first, count);
      if (done.fetch_add(count, std::memory_order_acq_rel) + count == total) done.notify_all();
    }
  }
  void wait() const {
    for (auto seen = done.load(std::memory_order_acquire); seen != total; seen = done.load(std::memory_order_acquire))
      done.wait(seen, std::memory_order_acquire);
  }
};

}  // namespace

void compute_in_slices(boost::asio::any_io_executor threads, std::uint64_t total, std::uint64_t each,
                       std::function<void(std::uint64_t, std::uint64_t)> part) {
  auto const slices = total / each + (total % each != 0);
  auto const work = std::make_shared<Work>(total, each, std::move(part));
  for (auto left = std::min(slices, helpers_max + 1); left > 1; --left)
    boost::asio::post(threads, [work] { work->take_slices(); });
  work->take_slices();
  work->wait();
}

}  // namespace chorus::parameters
