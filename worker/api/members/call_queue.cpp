#include "worker/api/members/call_queue.hpp"

#include <utility>

namespace chorus::embedded {

CallQueue::~CallQueue() {
  {
    std::lock_guard const lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Numbers are drawn here, in the order of the calls; whoever calls without waiting is behind.
std::shared_ptr<PendingCall> CallQueue::submit(std::function<Status()> call) {
  auto pending = std::make_shared<PendingCall>();
  std::lock_guard const lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.push_back({0, std::move(call), pending});
  jobs_.back().ticket = turns_.draw();  // once nothing can fail any more: a number that nobody serves stops all others
  changed_.notify_one();
  return pending;
}

void CallQueue::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Turn const turn(turns_, job.ticket);  // whoever has the next one finds this call done
    job.pending->end(job.call());
  }
}

}  // namespace chorus::embedded
