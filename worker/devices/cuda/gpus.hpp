// The GPUs of one worker with their arenas, pinned memory and idle sessions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/arena.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/lending.hpp"
#include "worker/devices/cuda/pinned.hpp"
#include "worker/devices/cuda/word_copy.hpp"

namespace chorus::devices {

// Parses "cuda:0"; nothing for "cpu". Errors: GpuErrc::unavailable for any other text.
[[nodiscard]] Result<std::optional<std::uint32_t>> parse_device(std::string_view text);
[[nodiscard]] std::string device_name(std::uint32_t index);

struct GpuLimits {
  std::uint64_t arena_bytes = 0;  // for each GPU, allocated with its first tensor; 0: half of the memory free then
  std::uint64_t pinned_bytes = std::uint64_t{256} << 20;  // for each GPU
  // No piece of work takes longer on a device that works. Work of runs has a limit of its own.
  std::chrono::milliseconds patience{10'000};
};

// Totals of all work of this worker on one GPU.
struct GpuTotals {
  GpuUse use;
  std::uint64_t arena_bytes = 0;
  std::uint64_t arena_used_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t pinned_limit_bytes = 0;
};

// A copy within one GPU's memory.
struct GpuCopy {
  std::byte* to = nullptr;
  std::byte const* from = nullptr;
  std::uint64_t bytes = 0;
};

// One GPU of the worker. Thread-safe.
class GpuUnit {
 public:
  GpuUnit(std::unique_ptr<Gpu> gpu, GpuLimits limits);

  [[nodiscard]] Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] PinnedPool& pinned() {
    reap();
    return pinned_;
  }
  // Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] Result<std::shared_ptr<GpuArena>> arena();
  [[nodiscard]] std::shared_ptr<GpuArena> arena_if_any() const;
  [[nodiscard]] Result<std::shared_ptr<GpuMemory>> acquire(std::uint64_t bytes);

  // Returns an idle session, or a new one, which takes the driver a millisecond. Errors: GpuErrc; lost if the GPU is.
  [[nodiscard]] Result<std::unique_ptr<GpuSession>> session();
  // Takes back a session with nothing queued, of which no call has failed.
  void give_back(std::unique_ptr<GpuSession> session);
  // Ends a session of which a call has failed with this error. Waits until its work is done; if that takes too long,
  // the GPU is lost. A lost GPU is not waited for: the session is abandoned. `used` is what its work uses in host
  // memory.
  void end(std::unique_ptr<GpuSession> session, Error const& why, std::shared_ptr<void const> used = nullptr);
  // Keeps a session, and what its work uses, until its work is done, or to the end of the process. Does not wait,
  // unlike the session's destructor.
  void abandon(std::unique_ptr<GpuSession> session, std::shared_ptr<void const> used);
  // Returns true if the device does no work any more, so that the destructor would not wait.
  [[nodiscard]] bool rests();

  // Copy between this GPU's memory and host memory, through pinned slots, and wait. Errors: GpuErrc.
  [[nodiscard]] Status upload(std::byte* to, std::span<std::byte const> from);
  [[nodiscard]] Status download(std::span<std::byte> to, std::byte const* from);
  // Downloads in pieces, in order, and calls `take` with each.
  [[nodiscard]] Status read(std::span<std::byte const> from,
                            std::function<void(std::span<std::byte const> piece)> const& take);
  // Copies within this GPU's memory, and waits.
  [[nodiscard]] Status copy(std::span<GpuCopy const> copies);
  // Reduces like Reducer::run over memory of this GPU, and waits.
  [[nodiscard]] Status fold(ReduceOp op, Dtype dtype, ReduceArguments const& arguments, Reducer::How how = {});
  // Converts within this GPU's memory, and waits.
  [[nodiscard]] Status code(std::span<CodeOrder const> orders);

  // Returns true if this GPU's work can read and write the other one's memory: the same GPU, or one with peer access,
  // which is enabled. The answer is remembered.
  [[nodiscard]] bool sees(GpuUnit& other);

  // Shares the arena with processes of this host. `proof`, the same number at every call, is written into the arena
  // once; waits for that as WordCopy does. Errors: GpuErrc; failed while the device has not written it.
  [[nodiscard]] Result<LentArena> lend(std::uint64_t proof);

  // Returns the reason once an error was GpuErrc::lost.
  [[nodiscard]] std::optional<std::string> lost() const;
  void saw(Error const& error);
  // The longest time that a piece of work takes, and the error of one that takes longer.
  [[nodiscard]] std::chrono::milliseconds patience() const { return limits_.patience; }
  [[nodiscard]] Error took_too_long(std::string_view what) const;

  void count(GpuUse const& use);
  [[nodiscard]] GpuTotals totals() const;

 private:
  // A session that nobody waits for, and what its work uses.
  struct Abandoned {
    std::shared_ptr<void const> used;
    std::unique_ptr<GpuSession> session;  // destroyed first
  };
  void reap();
  [[nodiscard]] Status done(GpuSession& session, Mark mark) const;
  template <class Work>
  [[nodiscard]] Status compute(Work const& work);
  template <class Move>
  [[nodiscard]] Status in_pieces(std::uint64_t bytes, Move const& move);

  std::unique_ptr<Gpu> const gpu_;
  GpuLimits const limits_;
  PinnedPool pinned_;
  mutable std::mutex mutex_;
  std::shared_ptr<GpuArena> arena_;
  std::optional<std::string> lost_;
  GpuUse use_;
  std::vector<std::unique_ptr<GpuSession>> idle_sessions_;
  std::vector<Abandoned> abandoned_;
  std::mutex seeing_;
  std::map<GpuUnit const*, bool> sees_;
  std::mutex lending_;
  LentArena lent_;
  bool is_proved_ = false;
  std::shared_ptr<GpuMemory> proof_;   // the block that holds the proof
  std::unique_ptr<WordCopy> proving_;  // the copy of the proof, while it is under way
};

// All GPUs of the worker. Outlives all memory that was acquired from them.
class Gpus {
 public:
  Gpus(FoundGpus found, GpuLimits limits);
  // Does not wait for GPUs that hang: all units remain to the end of the process.
  ~Gpus();
  Gpus(Gpus const&) = delete;
  Gpus& operator=(Gpus const&) = delete;

  [[nodiscard]] std::size_t size() const { return units_.size(); }
  [[nodiscard]] std::string const& why_none() const { return why_none_; }
  [[nodiscard]] GpuUnit& operator[](std::size_t index) const { return *units_[index]; }
  // Errors: GpuErrc::unavailable, whose detail names the GPUs that exist.
  [[nodiscard]] Result<GpuUnit*> find(std::uint32_t index) const;
  [[nodiscard]] GpuUnit* find(std::string_view uuid) const;  // null: not of this process
  [[nodiscard]] std::optional<std::string> lost() const;     // of the first lost GPU

 private:
  std::vector<std::unique_ptr<GpuUnit>> units_;
  std::string const why_none_;
};

// Waits for the mark. Returns true if it is reached, false at the deadline.
[[nodiscard]] Result<bool> wait_for(GpuSession& session, Mark mark, std::chrono::steady_clock::time_point deadline);

}  // namespace chorus::devices
