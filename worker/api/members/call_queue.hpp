// Asynchronous calls of a member: a thread that makes them one after the other, in turn with the others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "collectives/core/result.hpp"
#include "worker/api/members/pending_call.hpp"
#include "worker/api/members/turns.hpp"

namespace chorus::embedded {

// Thread-safe.
class CallQueue {
 public:
  // The turns outlive the object.
  explicit CallQueue(Turns& turns) : turns_(turns) {}
  ~CallQueue();  // after all calls: they should have been interrupted
  CallQueue(CallQueue const&) = delete;
  CallQueue& operator=(CallQueue const&) = delete;

  // Makes the call at its turn, which is drawn here.
  [[nodiscard]] std::shared_ptr<PendingCall> submit(std::function<Status()> call);

 private:
  struct Job {
    Turns::Ticket ticket;
    std::function<Status()> call;
    std::shared_ptr<PendingCall> pending;
  };

  void work();

  Turns& turns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // from the first call on
};

}  // namespace chorus::embedded
