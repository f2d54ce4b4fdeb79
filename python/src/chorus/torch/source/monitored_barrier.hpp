// The monitored barrier, which goes through the store of a process group and not through the library.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace chorus::process_group {

using Store = c10::intrusive_ptr<c10d::Store>;
using Deadline = std::chrono::steady_clock::time_point;

// Asks again and again: wait() of a store would keep other threads from using it.
template <class Condition>
bool holds_until(Deadline deadline, Condition condition) {
  auto pause = std::chrono::microseconds(100);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds(5));
  }
  return true;
}

inline std::vector<std::uint8_t> to_bytes(std::string const& text) { return {text.begin(), text.end()}; }
inline std::string to_text(std::vector<std::uint8_t> const& bytes) { return {bytes.begin(), bytes.end()}; }

// A barrier in which rank 0 finds out which ranks do not come.
class MonitoredBarrier {
 public:
  MonitoredBarrier(Store store, int rank, int size) : store_(std::move(store)), rank_(rank), size_(size) {}

  // Throws std::runtime_error on every rank unless all have come within `timeout`. It names the first rank that has
  // not, or with `names_all` all of them.
  void pass(std::chrono::milliseconds timeout, bool names_all) {
    auto const deadline = std::chrono::steady_clock::now() + timeout;
    auto const prefix = "monitored_barrier/" + std::to_string(number_++) + "/";
    auto const within = " failed to pass monitoredBarrier in " + std::to_string(timeout.count()) + " ms";
    std::string failure;
    if (rank_ == 0) {
      if (auto const missing = gather(prefix, deadline, names_all); !missing.empty())
        failure = (missing.find(',') == std::string::npos ? "Rank " : "Ranks ") + missing + within;
      store_->set(prefix + "result", to_bytes(failure));
    } else {
      store_->set(prefix + std::to_string(rank_), std::vector<std::uint8_t>{});
      bool const told = holds_until(deadline + patience, [&] { return store_->check({prefix + "result"}); });
      failure = told ? to_text(store_->get(prefix + "result")) : "Rank 0" + within;
    }
    if (failure.empty()) return;
    // Gloo's words, which programs look for.
    auto const how = rank_ == 0 ? " timed out in monitoredBarrier: "
                                : " successfully reached monitoredBarrier, but received errors while waiting for "
                                  "send/recv from rank 0: ";
    throw std::runtime_error("chorus: Rank " + std::to_string(rank_) + how + failure);
  }

 private:
  // Rank 0 says which are missing when its own time is over.
  static constexpr std::chrono::seconds patience{2};

  [[nodiscard]] std::string gather(std::string const& prefix, Deadline deadline, bool names_all) {
    std::string missing;
    for (int rank = 1; rank < size_; ++rank) {
      auto const key = prefix + std::to_string(rank);
      if (holds_until(deadline, [&] { return store_->check({key}); })) {
        store_->deleteKey(key);
        continue;
      }
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      if (!names_all) break;
    }
    return missing;
  }

  Store const store_;
  int const rank_, size_;
  std::uint64_t number_ = 0;
};

}  // namespace chorus::process_group
