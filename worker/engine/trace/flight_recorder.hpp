// The flight recorder of a worker: its last runs, and those that stand still now.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/run_statistics.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/trace/progress.hpp"
#include "worker/engine/trace/timeline.hpp"

namespace chorus::engine {

// What all runs of a kind have in common.
struct FlightKind {
  std::string group;
  std::uint32_t epoch = 0;
  Op op = Op::all_reduce;
  std::string algorithm;
  plan::Rank rank = 0;
  std::uint32_t ranks = 0;
  std::string tensor;  // "" where a program passed memory
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::string path;          // "links", or "shm" where the callers' own threads did everything
  RunStatistics statistics;  // of calls over shared memory that succeed: the same for each but for the duration
};

struct Flight {
  std::shared_ptr<FlightKind const> kind;
  std::uint64_t run = 0;
  std::string trace_id;    // 32 hexadecimal digits, or ""
  std::string_view state;  // on this rank: succeeded, failed, cancelled
  std::string error;       // code and detail, "" when it succeeded
  std::chrono::steady_clock::time_point started;
  RunStatistics statistics;
  std::vector<FlightStep> instructions;     // empty for calls over shared memory, where recording would cost as much as
                                            // the call
  std::vector<devices::GpuSpan> gpu_spans;  // work of the GPU, in time from the start of the run; empty without a GPU
};

// The last successful calls of one group over shared memory, which take a few hundred nanoseconds each: one thread at a
// time notes a call without lock, allocation or clock, and any thread reads.
class FlightLane {
 public:
  static constexpr std::size_t capacity = 1024;

  // Any thread. Registers a kind of call before the first of many such calls; returns its number for note().
  [[nodiscard]] std::uint32_t add(std::shared_ptr<FlightKind const> kind);

  // One thread at a time. `sequence`: number of the call in its group.
  void note(std::uint32_t kind, std::uint64_t sequence, std::chrono::steady_clock::time_point started,
            std::chrono::steady_clock::duration duration) noexcept {
    auto& slot = slots_[noted_ % capacity];
    // The version is odd while the words change. Each word is released: a reader that sees a new word also sees the odd
    // version.
    slot.version.store(2 * noted_ + 1, std::memory_order_relaxed);
    slot.sequence.store(sequence, std::memory_order_release);
    slot.started_ns.store(started.time_since_epoch().count(), std::memory_order_release);
    slot.kind_and_ns.store(packed(kind, duration.count()), std::memory_order_release);
    slot.version.store(2 * ++noted_, std::memory_order_release);
  }

  // Any thread. Appends the recorded calls to `flights`, in no order.
  void read(std::vector<Flight>& flights) const;

 private:
  static constexpr std::uint64_t ns_max = (std::uint64_t{1} << 40) - 1;  // 18 minutes
  static constexpr std::uint32_t kinds_max = 1u << 24;
  [[nodiscard]] static std::uint64_t packed(std::uint32_t kind, std::int64_t ns) {
    auto const duration = static_cast<std::uint64_t>(ns);
    return std::uint64_t{kind} << 40 | (duration < ns_max ? duration : ns_max);
  }
  struct Slot {
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::int64_t> started_ns{0};
    std::atomic<std::uint64_t> kind_and_ns{0};
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Slot) == 32);

  void forget_kinds();

  std::array<Slot, capacity> slots_;
  std::uint64_t noted_ = 0;
  mutable std::mutex kinds_mutex_;
  std::map<std::uint32_t, std::shared_ptr<FlightKind const>> kinds_;
  std::uint32_t next_kind_ = 0;
};

// Any thread. Outlives the data plane and the groups that write to it.
class FlightRecorder {
 public:
  static constexpr std::size_t capacity = 1024;

  struct Options {
    // How long a run may stand still before on_stall is called.
    std::chrono::milliseconds stall{2000};
    // Called when a run stands still, and again when it goes on or has ended. From several threads, one at a time,
    // never under a lock of this object; must not call the data plane.
    std::function<void(RunProgress const& run, bool stalled)> on_stall;
  };

  FlightRecorder() : FlightRecorder(Options()) {}
  explicit FlightRecorder(Options options) : options_(std::move(options)) {}
  FlightRecorder(FlightRecorder const&) = delete;
  FlightRecorder& operator=(FlightRecorder const&) = delete;

  void add(Flight&& flight);
  // Creates a lane for one group. Its calls stay after the group is gone; only the lanes of the last few such groups
  // are kept.
  [[nodiscard]] std::shared_ptr<FlightLane> make_lane();

  // The last `capacity`, the latest first.
  [[nodiscard]] std::vector<Flight> last() const;

  [[nodiscard]] std::chrono::milliseconds stall_after() const { return options_.stall; }
  void stalled(RunProgress run);
  void goes_on(std::uint64_t run);  // or has ended; no effect if the run was not stalled
  [[nodiscard]] std::vector<RunProgress> stalls() const;

 private:
  static constexpr std::size_t lanes_of_the_gone_max = 8;

  Options const options_;
  mutable std::mutex mutex_;
  std::vector<Flight> flights_;  // a ring: once full, the oldest is replaced
  std::size_t oldest_ = 0;
  std::vector<std::shared_ptr<FlightLane>> lanes_;
  std::map<std::uint64_t, RunProgress> stalls_;
  std::mutex telling_;
};

}  // namespace chorus::engine
