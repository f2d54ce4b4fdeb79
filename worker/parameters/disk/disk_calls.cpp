#include "worker/parameters/disk/disk_calls.hpp"

#include <unistd.h>

namespace chorus::parameters {

void DiskCalls::begin(DiskWorkPtr work) {
  std::scoped_lock const lock(mutex_);
  work->is_begun = true;
  under_way_[std::this_thread::get_id()] = std::move(work);
}

void DiskCalls::end() {
  std::scoped_lock const lock(mutex_);
  under_way_.erase(std::this_thread::get_id());
}

void DiskCalls::give_up(DiskWork& work) {
  std::scoped_lock const lock(mutex_);
  work.is_given_up = true;
}

void DiskCalls::give_up_all() {
  std::scoped_lock const lock(mutex_);
  for (auto const& [thread, work] : under_way_) work->is_given_up = true;
}

namespace {

DiskWork without_run(DiskWork const& work) {
  DiskWork seen;
  seen.title = work.title;
  seen.is_begun = work.is_begun;
  seen.is_given_up = work.is_given_up;
  seen.is_left = work.is_left;
  seen.wait = work.wait;
  return seen;
}

}  // namespace

DiskWork DiskCalls::seen(DiskWork const& work) const {
  std::scoped_lock const lock(mutex_);
  return without_run(work);
}

std::vector<DiskWork> DiskCalls::all() const {
  std::scoped_lock const lock(mutex_);
  std::vector<DiskWork> works;
  for (auto const& [thread, work] : under_way_) works.push_back(without_run(*work));
  return works;
}

std::vector<std::thread::id> DiskCalls::leave_waiting() {
  std::scoped_lock const lock(mutex_);
  std::vector<std::thread::id> threads;
  for (auto const& [thread, work] : under_way_) {
    work->is_given_up = true;
    if (!work->wait) continue;
    work->is_left = true;
    threads.push_back(thread);
  }
  return threads;
}

DiskCalls::Call::Call(DiskCalls& calls, Kind kind, std::string call) : calls_(calls) {
  std::scoped_lock const lock(calls_.mutex_);
  auto const found = calls_.under_way_.find(std::this_thread::get_id());
  if (found == calls_.under_way_.end()) return;
  work_ = found->second;
  is_refused_ = kind == Kind::makes && work_->is_given_up;
  work_->wait = DiskWork::Wait{std::move(call), std::chrono::steady_clock::now()};
}

DiskCalls::Call::~Call() {
  if (!work_) return;
  std::unique_lock lock(calls_.mutex_);
  work_->wait.reset();
  if (!work_->is_left) return;
  lock.unlock();
  for (;;) ::pause();
}

}  // namespace chorus::parameters
