// The flight recorder of a worker: its last runs, whoever called them, and those that stand still right now.
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
#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/progress.hpp"
#include "worker/engine/timeline.hpp"

namespace chorus::engine {

// What runs of a kind have in common.
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
  std::string path;  // "links", or "shm" where the callers' own threads did everything
  // Of calls over shared memory that succeed: the same for each.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;
};

struct Flight {
  std::shared_ptr<FlightKind const> kind;
  std::uint64_t run = 0;
  std::string trace_id;    // 32 hexadecimal digits, or ""
  std::string_view state;  // succeeded, failed, cancelled: of the program itself
  std::string error;       // code and detail, "" when it succeeded
  std::chrono::steady_clock::time_point started;
  double seconds = 0;
  double wait_seconds = 0;  // for peers
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;                  // instructions completed
  std::vector<FlightStep> instructions;     // none of calls over shared memory: they would cost as much as the call
  std::vector<devices::GpuSpan> gpu_spans;  // when its GPU was at work, from its start on; none without one
};

// Calls over shared memory take a few hundred nanoseconds: one that succeeded is a few words here, written by one
// thread at a time without a lock, an allocation or a clock, and read by any.
class FlightLane {
 public:
  static constexpr std::size_t capacity = 1024;

  // Any thread. For a kind of call that is about to be made again and again; the number is for note().
  [[nodiscard]] std::uint32_t add(std::shared_ptr<FlightKind const> kind);

  // One thread at a time. `sequence`: of the call, in its group.
  void note(std::uint32_t kind, std::uint64_t sequence, std::chrono::steady_clock::time_point started,
            std::chrono::steady_clock::duration duration) noexcept {
    auto& slot = slots_[noted_ % capacity];
    // Odd while the words change. They are released one by one: who reads a new one sees that, too.
    slot.version.store(2 * noted_ + 1, std::memory_order_relaxed);
    slot.sequence.store(sequence, std::memory_order_release);
    slot.started_ns.store(started.time_since_epoch().count(), std::memory_order_release);
    slot.kind_and_ns.store(packed(kind, duration.count()), std::memory_order_release);
    slot.version.store(2 * ++noted_, std::memory_order_release);
  }

  // Any thread: what is there, in no order.
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

// Any thread. Outlives the data plane and the groups that tell it.
class FlightRecorder {
 public:
  static constexpr std::size_t capacity = 1024;

  struct Options {
    // How long a run may stand still until that is told.
    std::chrono::milliseconds stall{2000};
    // Told of a run that stands still, and again when it goes on or has ended. From several threads, one at a time, and
    // not from within a call of this object that holds a lock; calls nothing of the data plane.
    std::function<void(RunProgress const& run, bool stalled)> on_stall;
  };

  FlightRecorder() : FlightRecorder(Options()) {}
  explicit FlightRecorder(Options options) : options_(std::move(options)) {}
  FlightRecorder(FlightRecorder const&) = delete;
  FlightRecorder& operator=(FlightRecorder const&) = delete;

  void add(Flight&& flight);
  // For one group. What was noted stays when the group goes, while lanes of a few such are kept.
  [[nodiscard]] std::shared_ptr<FlightLane> make_lane();

  // The last `capacity`, the latest first.
  [[nodiscard]] std::vector<Flight> last() const;

  [[nodiscard]] std::chrono::milliseconds stall_after() const { return options_.stall; }
  void stalled(RunProgress run);
  void goes_on(std::uint64_t run);  // or has ended; nothing if it did not stand still
  [[nodiscard]] std::vector<RunProgress> stalls() const;

 private:
  static constexpr std::size_t lanes_of_the_gone_max = 8;

  Options const options_;
  mutable std::mutex mutex_;
  std::vector<Flight> flights_;  // where full, the oldest gives way
  std::size_t oldest_ = 0;
  std::vector<std::shared_ptr<FlightLane>> lanes_;
  std::map<std::uint64_t, RunProgress> stalls_;
  std::mutex telling_;
};

}  // namespace chorus::engine
