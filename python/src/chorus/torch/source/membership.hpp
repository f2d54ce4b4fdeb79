// A membership in a group, and how its collectives are issued.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <chorus/chorus.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "queue.hpp"
#include "streams.hpp"

namespace chorus::process_group {

// CallOptions of one call, which owns the lists that the library is shown.
struct CallOptions {
  chorus_reduce_t reduce = CHORUS_SUM;
  std::int64_t root = 0;
  std::vector<std::uint64_t> counts, receive_counts;
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // the group's

  [[nodiscard]] chorus_collective_options_t to_library(std::chrono::milliseconds group_timeout) const {
    chorus_collective_options_t options{};
    options.size = sizeof options;
    options.reduce = reduce;
    options.root = static_cast<std::uint32_t>(root);
    options.counts = counts.data();
    options.counts_length = counts.size();
    options.receive_counts = receive_counts.data();
    options.receive_counts_length = receive_counts.size();
    options.timeout_ms = (timeout == c10d::kUnsetTimeout || timeout == kNoTimeout ? group_timeout : timeout).count();
    return options;
  }
};

// What a call consists of: it is handed what every function of the library takes, and returns what that returns.
using Body =
    std::function<chorus_status_t(chorus_group_t* group, chorus_collective_options_t const*, chorus_error_t* error)>;

// How a call appears: in messages, in c10d and in the profiler.
struct Kind {
  char const* name;
  c10d::OpType type;
  char const* title;
};

// All functions from any thread.
class Membership {
 public:
  // Joins group `name`, of which `worker` is a member, in any epoch where `epoch` is 0. Throws where it cannot.
  Membership(chorus_worker_t* worker, std::string name, std::uint32_t epoch, int rank, int size,
             std::chrono::milliseconds timeout)
      : name_(std::move(name)),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        queue_(std::make_shared<Queue>(patience(timeout))) {
    Failure failure;
    auto const joining = "chorus: joining group '" + name_ + "' as rank " + std::to_string(rank);
    failure.check(chorus_worker_join(worker, name_.c_str(), timeout.count(), &group_, failure.get()), joining);
    chorus_group_info_t info{};
    info.size = sizeof info;
    auto const described = chorus_group_describe(group_, &info, failure.get());
    if (described == CHORUS_OK && (epoch == 0 || info.epoch == epoch)) return;
    chorus_group_free(group_);
    failure.check(described, joining);
    throw std::runtime_error(joining + ": it is in epoch " + std::to_string(info.epoch) + ", expected " +
                             std::to_string(epoch));
  }
  // Waits for the end of all calls.
  ~Membership() {
    if (is_foreign()) {
      new std::shared_ptr<Queue>(queue_);  // its thread is the parent's: nothing here can end it
      return;
    }
    finish();
    chorus_group_free(group_);
  }
  Membership(Membership const&) = delete;
  Membership& operator=(Membership const&) = delete;

  [[nodiscard]] std::string const& name() const { return name_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  [[nodiscard]] std::uint64_t number_of_calls() const { return calls_; }
  // A child of fork() of the process that has joined.
  [[nodiscard]] bool is_foreign() const { return process_ != ::getpid(); }

  // A function that waits for the end of the calls that were issued, and may outlive the membership.
  [[nodiscard]] std::function<void()> drain() const {
    return [this_queue = std::weak_ptr<Queue>(queue_)] {
      if (auto const queue = this_queue.lock()) queue->drain();
    };
  }

  // Waits for the end of all calls; none follows.
  void finish() {
    if (queue_) queue_->drain();  // a thread that waits for a call may have the queue as well
    queue_.reset();
  }

  Handle begin(Kind kind, std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> outputs, CallOptions options,
               Body body) {
    check_process(kind);
    auto const number = calls_++;
    auto run = [this, kind, number, queued = Queued::before(inputs, outputs), options = std::move(options),
                body = std::move(body)] {
      if (queued) queued->wait();
      // Copies to and from tensors are no part of a computation.
      at::AutoDispatchBelowADInplaceOrView const values_alone;
      Failure failure;
      auto const how = options.to_library(timeout_);
      auto const status = body(group_, &how, failure.get());
      if (status != CHORUS_OK)
        failure.check(status,
                      std::string("chorus: ") + kind.name + ", call " + std::to_string(number) + " of " + place());
    };
    auto call = c10::make_intrusive<Call>(std::weak_ptr<Queue>(queue_), rank_, kind.type, kind.title, inputs,
                                          std::move(outputs), std::move(run));
    queue_->submit(call);
    return call;
  }

  // Throws in a child of fork().
  void check_process(Kind kind) const {
    TORCH_CHECK(!is_foreign(), "chorus: ", kind.name, ": this process is a child, by fork(), of the one that is ",
                place(), ": start processes by \"spawn\"");
  }
  // "rank 0 of 4 in group 'torch-5f0c'".
  [[nodiscard]] std::string place() const {
    return "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " in group '" + name_ + "'";
  }
  [[nodiscard]] chorus_group_t* group() const { return group_; }

 private:
  // How long callbacks may hold up calls: less than other ranks wait for these.
  static std::chrono::milliseconds patience(std::chrono::milliseconds timeout) {
    return std::min<std::chrono::milliseconds>(timeout / 2, std::chrono::minutes(1));
  }

  pid_t const process_ = ::getpid();
  std::string const name_;
  int const rank_, size_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<std::uint64_t> calls_{0};
  chorus_group_t* group_ = nullptr;
  std::shared_ptr<Queue> queue_;
};

}  // namespace chorus::process_group
