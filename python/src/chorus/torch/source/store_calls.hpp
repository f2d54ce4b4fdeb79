// What goes through the store of a process group and not through the library: the monitored barrier, and point to
// point.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "memory.hpp"

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
      store_->set(prefix + std::to_string(rank_), {});
      bool const told = holds_until(deadline + patience, [&] { return store_->check({prefix + "result"}); });
      failure = told ? to_text(store_->get(prefix + "result")) : "Rank 0" + within;
    }
    if (!failure.empty())
      throw std::runtime_error("chorus: Rank " + std::to_string(rank_) + " timed out in monitoredBarrier: " + failure);
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

// A message that is to be received. Nothing runs in the background: wait() and isCompleted() look for it.
class Receipt final : public c10d::Work {
 public:
  // Sets the rank that has sent, and returns whether a message was there and was taken.
  using Take = std::function<bool(int& source)>;

  Receipt(int rank, c10d::OpType type, at::Tensor const& tensor, std::chrono::milliseconds timeout, std::string what,
          Take take)
      : Work(rank, type), tensor_(tensor), timeout_(timeout), what_(std::move(what)), take_(std::move(take)) {}

  bool isCompleted() override {
    std::lock_guard const lock(taking_);
    return try_to_take();
  }
  bool isSuccess() const override { return const_cast<Receipt*>(this)->isCompleted(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    auto const patience = timeout == kNoTimeout ? timeout_ : timeout;
    if (!holds_until(std::chrono::steady_clock::now() + patience, [this] { return isCompleted(); }))
      throw std::runtime_error(what_ + ": no message within " + std::to_string(patience.count()) + " ms");
    return true;
  }
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return {tensor_}; }

 private:
  bool try_to_take() {
    if (take_ && take_(source_)) {
      take_ = nullptr;
      finish();
    }
    return !take_;
  }

  at::Tensor const tensor_;
  std::chrono::milliseconds const timeout_;
  std::string const what_;
  std::mutex taking_;
  Take take_;
  int source_ = -1;
};

// Messages between two ranks, in the order in which they were sent. All functions from any thread.
class Messages : public std::enable_shared_from_this<Messages> {
 public:
  Messages(Store store, int rank, int size) : store_(std::move(store)), rank_(rank), size_(size) {}

  // Copies the tensor to the store.
  void send(at::Tensor const& tensor, int to, int tag) {
    Read const read(tensor);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(tensor.nbytes()));
    if (!bytes.empty()) std::memcpy(bytes.data(), read.view()->data, bytes.size());
    store_->set(key(rank_, to, tag, next(sent_, to, tag)), bytes);
  }

  c10::intrusive_ptr<c10d::Work> receive(at::Tensor tensor, int from, int tag, std::chrono::milliseconds timeout) {
    auto const name = key(from, rank_, tag, next(received_, from, tag));
    auto const what = "chorus: recv of rank " + std::to_string(rank_) + " from rank " + std::to_string(from);
    return c10::make_intrusive<Receipt>(rank_, c10d::OpType::RECV, tensor, timeout, what,
                                        [self = shared_from_this(), name, tensor, from, what](int& source) {
                                          source = from;
                                          return self->take(name, tensor, what);
                                        });
  }

  c10::intrusive_ptr<c10d::Work> receive_any(at::Tensor tensor, int tag, std::chrono::milliseconds timeout) {
    auto const what = "chorus: recv of rank " + std::to_string(rank_) + " from any rank";
    return c10::make_intrusive<Receipt>(rank_, c10d::OpType::RECVANYSOURCE, tensor, timeout, what,
                                        [self = shared_from_this(), tensor, tag, what](int& source) {
                                          return self->take_any(source, tensor, tag, what);
                                        });
  }

 private:
  using Counters = std::map<std::pair<int, int>, std::uint64_t>;  // by other rank and tag

  static std::string key(int from, int to, int tag, std::uint64_t number) {
    return "message/" + std::to_string(from) + "/" + std::to_string(to) + "/" + std::to_string(tag) + "/" +
           std::to_string(number);
  }
  std::uint64_t next(Counters& counters, int other, int tag) {
    std::lock_guard const lock(counting_);
    return counters[{other, tag}]++;
  }
  bool take(std::string const& name, at::Tensor const& tensor, std::string const& what) {
    if (!store_->check({name})) return false;
    auto const bytes = store_->get(name);
    store_->deleteKey(name);
    TORCH_CHECK_VALUE(bytes.size() == tensor.nbytes(), what, ": a message of ", bytes.size(), " bytes, expected ",
                      tensor.nbytes());
    Written written(tensor, false);
    if (!bytes.empty()) std::memcpy(written.view()->data, bytes.data(), bytes.size());
    at::AutoDispatchBelowADInplaceOrView const values_alone;
    written.finish();
    return true;
  }

  bool take_any(int& source, at::Tensor const& tensor, int tag, std::string const& what) {
    std::lock_guard const lock(counting_);
    for (source = 0; source < size_; ++source) {
      auto& number = received_[{source, tag}];
      if (!take(key(source, rank_, tag, number), tensor, what)) continue;
      ++number;
      return true;
    }
    return false;
  }

  Store const store_;
  int const rank_, size_;
  std::mutex counting_;
  Counters sent_, received_;
};

}  // namespace chorus::process_group
