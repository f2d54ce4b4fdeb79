// Threads for work that waits for a disk.
//
// A disk may never answer: the server of a network file system may be gone, or a device may fail. A thread that waits
// in the kernel cannot be ended, so threads here are expendable. A caller waits until its deadline, or until one system
// call has taken longer than the patience of the disk. Then it gets a problem that names the call, the work is
// abandoned, and other work continues on other threads. Abandoned work changes nothing more if its call returns later.
// A thread that still waits when the disk is stopped is left behind.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/message/message.hpp"
#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::parameters {

struct DiskWork;

struct DiskPatience {
  std::chrono::milliseconds call{30'000};  // for one system call
  std::size_t threads = 8;                 // at most
};

// Used on the control thread, except where a function says otherwise.
class Disk {
 public:
  Disk(boost::asio::any_io_executor control, std::shared_ptr<checkpoints::Files> files, DiskPatience patience);
  ~Disk();  // after stop(), or without run(): joins the threads that were not left behind
  Disk(Disk const&) = delete;
  Disk& operator=(Disk const&) = delete;

  // The files for work on the disk's threads. They outlive the disk, for threads that are left behind.
  [[nodiscard]] std::shared_ptr<checkpoints::Files> const& files() const;

  // endless: wait until the deadline only, for work that uses objects which the caller must not use before its end.
  enum class Patience { with_calls, endless };

  // Runs `work` on a thread of the disk and returns its result. `work` owns what it uses, because it goes on for a
  // while after the caller is cancelled. Problems: unavailable for a system call that does not return, or if the disk
  // is stopped; deadline_exceeded.
  template <class T>
  boost::asio::awaitable<http::Checked<T>> run(std::string title, std::function<http::Checked<T>()> work,
                                               http::TimePoint deadline, Patience patience = Patience::with_calls);

  // Releases `owner` on a thread of the disk, because the last owner of a file closes it. May be called on any thread.
  void let_go(std::shared_ptr<void const> owner);

  // The system call that has waited longest, and its time; nothing if none is under way.
  struct Stall {
    std::string text;  // "open /checkpoints/... (restoring ...)"
    double seconds = 0;
  };
  [[nodiscard]] std::optional<Stall> longest() const;
  // Returns the same as a sentence, if it has waited longer than the patience.
  [[nodiscard]] std::optional<std::string> trouble() const;

  // Returns when no work is under way, or at `until`.
  boost::asio::awaitable<void> settled(http::TimePoint until);
  // Starts no more work and abandons all work under way. Returns when that has ended, or at `until`, with a sentence
  // for each thread that is left behind in a system call.
  boost::asio::awaitable<std::vector<std::string>> stop(http::TimePoint until);

 private:
  struct State;
  [[nodiscard]] boost::asio::awaitable<std::optional<http::Problem>> perform(std::shared_ptr<DiskWork> work,
                                                                             http::TimePoint deadline,
                                                                             Patience patience);
  [[nodiscard]] std::shared_ptr<DiskWork> make_work(std::string title, std::function<void()> run) const;
  [[nodiscard]] std::optional<http::Problem> stalled(DiskWork const& work, http::TimePoint* look_again) const;

  std::shared_ptr<State> const state_;
  DiskPatience const patience_;
};

template <class T>
boost::asio::awaitable<http::Checked<T>> Disk::run(std::string title, std::function<http::Checked<T>()> work,
                                                   http::TimePoint deadline, Patience patience) {
  auto const result = std::make_shared<std::optional<http::Checked<T>>>();
  auto run = [result, work = std::move(work)]() mutable {
    auto made = work();
    work = nullptr;  // its objects are destroyed on this thread, not on the caller's
    result->emplace(std::move(made));
  };
  auto problem = co_await perform(make_work(std::move(title), std::move(run)), deadline, patience);
  if (problem) co_return std::move(*problem);
  co_return std::move(**result);
}

}  // namespace chorus::parameters
