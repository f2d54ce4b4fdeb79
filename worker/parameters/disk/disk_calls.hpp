// Records which threads wait for a disk, in which system call, and for how long.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::parameters {

// A piece of work with files, shared by the coroutine that waits for it and the thread that does it. All members except
// `title` and `run` are guarded by DiskCalls.
struct DiskWork {
  struct Wait {
    std::string call;  // "open /checkpoints/c/checkpoint-000000000001/manifest.json"
    std::chrono::steady_clock::time_point since;
  };
  std::string title;  // "restoring shard 0 of w from checkpoint c"
  std::function<void()> run;
  bool is_begun = false;
  bool is_given_up = false;  // no caller waits any more: the work makes nothing more and removes what it made
  bool is_left = false;      // its thread was left behind in a call
  std::optional<Wait> wait;
};
using DiskWorkPtr = std::shared_ptr<DiskWork>;

// Thread-safe.
class DiskCalls {
 public:
  // The calling thread does this work until end().
  void begin(DiskWorkPtr work);
  void end();

  void give_up(DiskWork& work);
  void give_up_all();                                          // all work under way
  [[nodiscard]] DiskWork seen(DiskWork const& work) const;     // a copy without `run`
  [[nodiscard]] std::vector<DiskWork> all() const;             // copies of all work under way
  [[nodiscard]] std::vector<std::thread::id> leave_waiting();  // leaves waiting threads behind and returns their ids

  // While a Call exists, the calling thread is in this system call. The destructor never returns on a thread that was
  // left behind meanwhile, because objects that the thread uses may have been destroyed.
  class Call {
   public:
    enum class Kind { makes, clears };  // clears: allowed also for work that was given up
    Call(DiskCalls& calls, Kind kind, std::string call);
    ~Call();
    Call(Call const&) = delete;
    Call& operator=(Call const&) = delete;
    [[nodiscard]] bool is_refused() const { return is_refused_; }

   private:
    DiskCalls& calls_;
    DiskWorkPtr work_;  // null on a thread that is not the disk's
    bool is_refused_ = false;
  };

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, DiskWorkPtr> under_way_;
};

// Wraps `files` so that their system calls are recorded in `calls`. Reads and writes are split into portions, and
// writes are synced every few portions, so that no call takes long because a file is large. Keeps `files` and `calls`
// alive.
[[nodiscard]] std::shared_ptr<checkpoints::Files> watched(std::shared_ptr<checkpoints::Files> files,
                                                          std::shared_ptr<DiskCalls> calls);

}  // namespace chorus::parameters
