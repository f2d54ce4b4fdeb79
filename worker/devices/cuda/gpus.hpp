// The GPUs of one worker with the memory that it has there.
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

// "cuda:0"; nothing for "cpu". Errors: GpuErrc::unavailable for what is neither.
[[nodiscard]] Result<std::optional<std::uint32_t>> parse_device(std::string_view text);
[[nodiscard]] std::string device_name(std::uint32_t index);

struct GpuLimits {
  std::uint64_t arena_bytes = 0;  // of each GPU, taken when the first tensor comes there; 0: half of what is free then
  std::uint64_t pinned_bytes = std::uint64_t{256} << 20;  // for each GPU
};

// What all runs of this worker on one GPU have done.
struct GpuTotals {
  GpuUse use;
  std::uint64_t arena_bytes = 0;
  std::uint64_t arena_used_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t pinned_limit_bytes = 0;
};

// Within one GPU's memory.
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
  [[nodiscard]] PinnedPool& pinned() { return pinned_; }
  // Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] Result<std::shared_ptr<GpuArena>> arena();
  [[nodiscard]] std::shared_ptr<GpuArena> arena_if_any() const;
  [[nodiscard]] Result<std::shared_ptr<GpuMemory>> acquire(std::uint64_t bytes);

  // One that was given back, or a new one: to make one takes the driver a millisecond. Errors: GpuErrc.
  [[nodiscard]] Result<std::unique_ptr<GpuSession>> session();
  // With nothing queued, and of which no call has failed.
  void give_back(std::unique_ptr<GpuSession> session);

  // Copies between this GPU's memory and the host's, through pinned slots, and waits. Errors: GpuErrc.
  [[nodiscard]] Status upload(std::byte* to, std::span<std::byte const> from);
  [[nodiscard]] Status download(std::span<std::byte> to, std::byte const* from);
  // The same in pieces, one behind the other, for those who need not have all of it at once.
  [[nodiscard]] Status read(std::span<std::byte const> from,
                            std::function<void(std::span<std::byte const> piece)> const& take);
  // Any number of copies within it, and waits.
  [[nodiscard]] Status copy(std::span<GpuCopy const> copies);
  // As Folder::run, over memory of this GPU, and waits.
  [[nodiscard]] Status fold(ReduceOp op, Dtype dtype, Folding const& folding, Folder::How how = {});
  // dst[i] = src[i] / divisor, rounded as devices::Divide does, and waits.
  [[nodiscard]] Status divide(std::span<std::byte> bytes, Dtype dtype, std::uint32_t divisor);

  // Whether what works here may read and write the other's memory where it lies, which it is asked once: this one, or
  // another GPU with peer access.
  [[nodiscard]] bool sees(GpuUnit& other);

  // The arena for processes of this host to read where it lies. The proof is written into it, once: the same number at
  // every call. Waits for that, as WordCopy does. Errors: GpuErrc; failed while the device has not written it.
  [[nodiscard]] Result<LentArena> lend(std::uint64_t proof);

  // Why nothing works there any more, once an error was GpuErrc::lost.
  [[nodiscard]] std::optional<std::string> lost() const;
  void saw(Error const& error);

  void count(GpuUse const& use);
  [[nodiscard]] GpuTotals totals() const;

 private:
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
  std::mutex seeing_;
  std::map<GpuUnit const*, bool> sees_;
  std::mutex lending_;
  LentArena lent_;
  bool is_proved_ = false;
  std::shared_ptr<GpuMemory> proof_;   // the block that holds it
  std::unique_ptr<WordCopy> proving_;  // on its way there
};

// Outlives all memory that was acquired there.
class Gpus {
 public:
  Gpus(FoundGpus found, GpuLimits limits);

  [[nodiscard]] std::size_t size() const { return units_.size(); }
  [[nodiscard]] std::string const& why_none() const { return why_none_; }
  [[nodiscard]] GpuUnit& operator[](std::size_t index) const { return *units_[index]; }
  // Errors: GpuErrc::unavailable, which says what there is.
  [[nodiscard]] Result<GpuUnit*> find(std::uint32_t index) const;
  [[nodiscard]] GpuUnit* find(std::string_view uuid) const;  // null: not of this process
  [[nodiscard]] std::optional<std::string> lost() const;     // the first that is

 private:
  std::vector<std::unique_ptr<GpuUnit>> units_;
  std::string const why_none_;
};

// Waits until the mark is reached; true. False: the time is over.
[[nodiscard]] Result<bool> wait_for(GpuSession& session, Mark mark, std::chrono::steady_clock::time_point deadline);

}  // namespace chorus::devices
