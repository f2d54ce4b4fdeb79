// Input and result of one rank's run.
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
#include "collectives/core/run_statistics.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/links/frames/frame.hpp"

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

// A member of the group, as other members dial it.
struct Peer {
  plan::Rank rank = 0;
  std::string worker;
  std::uint64_t incarnation = 0;
  std::string url;  // address of the peer's only port
};

// Everything that one rank needs for a run. Both spans stay valid until RunDone is called; the engine holds `owner`
// until then.
struct RunSpec {
  // The same number on every rank, not 0; is_members_call() tells who has begun the run.
  std::uint64_t run = 0;
  std::string group;  // for people
  std::uint32_t epoch = 0;
  std::uint64_t token = 0;        // capability: a link that presents another token for this run is refused
  std::string description;        // "all_reduce sum f32[4096] ring of 4": shown to both sides when ranks disagree
  std::uint64_t fingerprint = 0;  // over everything on which the ranks must agree: spec, dtype, sizes, reduce, in_place
  std::shared_ptr<plan::Program const> program;
  std::vector<Peer> members;  // in rank order
  Dtype dtype = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  plan::Sizes sizes;
  // Format of the program's coded chunks (plan::Program::coded_from), on f32 and f64 in memory of the host. The same on
  // all ranks, as the fingerprint covers it. None: they hold elements.
  std::optional<WireFormat> codes;
  // Memory that the program addresses (plan::memory). With program->spec.in_place, a rank that has both buffers has the
  // same memory in both.
  std::span<std::byte const> input;
  std::span<std::byte> output;
  // The GPU unit on which both buffers lie and which does the work; null: host memory. The Gpus of the unit outlive the
  // data plane, or `owner` holds them. Peers are not told: the result has the same bits.
  devices::GpuUnit* gpu = nullptr;
  std::shared_ptr<void const> owner;
  std::uint64_t segment_bytes = 262144;
  std::uint32_t window = 4;  // segments of a message that are handed to a link at a time
  std::chrono::steady_clock::time_point deadline;
  std::optional<links::Envelope> envelope;  // presented to the receiver: the run sends one message of a group
};

// Times of one run, for the flight recorder.
struct RunTrace {
  std::vector<FlightStep> instructions;     // when each instruction ran
  devices::GpuUse gpu;                      // zeros without a GPU; already added to the totals of the unit
  std::vector<devices::GpuSpan> gpu_spans;  // operations of the GPU, in time from the start of the run
};

// Result of one rank's run. Kept small because every call over shared memory makes one and takes only a few hundred
// nanoseconds.
struct RunResult {
  RunResult() noexcept {}  // not an aggregate: GCC 12 would clear one of this size by the slower `rep stos`

  Status status;                     // EngineErrc; the detail names the culprit worker, rank, direction and step
  std::vector<plan::Rank> culprits;  // empty on success and when no rank is to blame (aborted)
  // Begin of the run. A small call over shared memory reads the clock only when its first records are on their way.
  std::chrono::steady_clock::time_point started;
  RunStatistics statistics;
  std::unique_ptr<RunTrace> trace;  // null for a run that never began, and for calls over shared memory alone
};

// The result of a call that could not begin.
[[nodiscard]] inline RunResult failed(Error why) {
  RunResult result;
  result.status = std::move(why);
  return result;
}

// Receives the result of a run, once, on the data-plane thread or on a thread that does its work. A handler with more
// than a few microseconds of work must post it elsewhere.
using RunDone = std::function<void(RunResult)>;

}  // namespace chorus::engine
