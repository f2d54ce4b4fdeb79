// What a rank is given to run, and what it gets back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/result.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/engine/trace/reduce_clock.hpp"
#include "worker/links/frame.hpp"

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

struct Peer {
  plan::Rank rank = 0;
  std::string worker;
  std::uint64_t incarnation = 0;
  std::string url;  // of the peer's one port
};

// Everything that one rank needs to run. Both spans stay valid until `done` was called; `owner` is held until then.
struct RunSpec {
  // The same number on every rank, not 0; bit 63 is set for calls between members and clear for the coordinator's.
  std::uint64_t run = 0;
  std::string group;  // for people
  std::uint32_t epoch = 0;
  std::uint64_t token = 0;        // capability: a link that presents another one for this run is refused
  std::string description;        // "all_reduce sum f32[4096] ring of 4": shown to both sides when ranks disagree
  std::uint64_t fingerprint = 0;  // over everything that must agree: spec, dtype, sizes, reduce, in_place
  std::shared_ptr<plan::Program const> program;
  std::vector<Peer> members;  // in rank order
  Dtype dtype = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  plan::Sizes sizes;
  // What the program addresses (plan::memory): of ranks that have both buffers the same memory when
  // program->spec.in_place.
  std::span<std::byte const> input;
  std::span<std::byte> output;
  // Where both lie, and what works on them; null: host memory. Its Gpus outlive the data plane, or `owner` holds them.
  // Peers do not know of it: the bits are the same.
  devices::GpuUnit* gpu = nullptr;
  std::shared_ptr<void const> owner;
  std::uint64_t segment_bytes = 262144;
  std::uint32_t window = 4;  // segments queued per link before the next is handed over
  std::chrono::steady_clock::time_point deadline;
  std::optional<links::Envelope> envelope;  // presented to the receiver: the run sends one message of a group
};

struct RunTrace {
  std::vector<FlightStep> instructions;     // when they ran
  devices::GpuUse gpu;                      // zeros without one; added to the unit's totals already
  std::vector<devices::GpuSpan> gpu_spans;  // what it did when, from the start of the run on
};

// Small: a call over shared memory takes a few hundred nanoseconds, and this is made for each.
struct RunResult {
  RunResult() noexcept {}  // member by member: GCC 12 clears an aggregate of this size by `rep stos`, some 30 cycles

  Status status;                     // EngineErrc; the detail names the culprit worker, rank, direction and step
  std::vector<plan::Rank> culprits;  // empty on success or when nobody is to blame (aborted)
  // Of a small call over shared memory: when what it sends is on its way, some 50 ns after its beginning.
  std::chrono::steady_clock::time_point started;
  std::chrono::steady_clock::duration duration{0};
  double wait_seconds = 0;       // for peers: see waited_seconds(); 0 of calls over shared memory alone
  std::uint64_t bytes_sent = 0;  // payload
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;  // instructions completed
  Reduced reduced;
  std::unique_ptr<RunTrace> trace;  // null of what never began, and of calls over shared memory alone

  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(duration).count(); }
};

// Called once, on the data thread or one that does its work; posts elsewhere if it has more to do than a few
// microseconds.
using RunDone = std::function<void(RunResult)>;

}  // namespace chorus::engine
