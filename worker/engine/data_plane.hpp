// The data plane of one worker: a thread of its own that holds the links and runs the plans, so that a reduction of 64
// MiB never delays a heartbeat or a health check.
//
// Knows no algorithms and no REST: it is handed programs and memory, and reports how each run ended.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
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
#include "http/message.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/flight_recorder.hpp"
#include "worker/engine/reduce_clock.hpp"
#include "worker/engine/retired.hpp"
#include "worker/links/handshake.hpp"

namespace chorus::memory {
class Arena;
}

namespace chorus::http {
class Credentials;
}

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

class Interruption;
class RunKind;
struct RunCall;

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

// Traffic with one peer since the start of the process, for metrics.
struct PeerTraffic {
  std::string worker;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;     // time with something queued to the peer
  double receive_busy_seconds = 0;  // time between the first and last byte of payloads
  std::uint32_t connections = 0;
  std::string link;  // how: "shm", "tcp", "tls", "shm and tcp" while the directions differ, empty without connections
  std::string why_not_shm;          // one line, if shared memory was tried and is not used
  std::string why_not_ipc;          // one line, if memory of GPUs was lent and is not read where it lies
  std::uint64_t dials = 0;          // connections that were opened from here, or tried
  struct Ends {                     // of connections, otherwise than by a stop of this worker
    std::uint64_t unreachable = 0;  // none came about
    std::uint64_t closed = 0;       // by the peer, or by whatever is between
    std::uint64_t refused = 0;      // by the peer, or as it was replaced
    std::uint64_t malformed = 0;    // what came was not understood
    std::uint64_t corrupt = 0;      // what came was changed on the way, found here or by the peer
  };
  Ends ends;
  // From questions to their answers: how many took up to 10 us * 2^k, the last ones longer.
  std::array<std::uint64_t, 17> round_trips{};
  double round_trip_seconds = 0;       // their sum
  double last_round_trip_seconds = 0;  // 0: none yet
};

struct DataPlaneOptions {
  std::string worker;  // own id and incarnation, presented in handshakes
  std::uint64_t incarnation = 0;
  std::chrono::microseconds spin{20};  // how long the idle thread polls before it blocks; 0 blocks at once
  // The same for a caller of run(), who has nothing else to do and gives way to other threads between looks: with more
  // ranks than cores waking it costs more than that.
  std::chrono::microseconds call_spin{500};
  // Runs in this loop, which outlives it, instead of on a thread of its own: for those who own the time. Then it is
  // made, used and destroyed by the thread that runs the loop, not from within it, and run() is not called.
  boost::asio::io_context* loop = nullptr;
  // Per run and link: sent without waiting for the receiver's grant; equal everywhere. With room for 128 KiB in a few
  // chunks: where waking somebody for a grant takes longer than to copy them once more (docs/performance.md).
  std::uint64_t eager_bytes = 256 * 1024;
  // Of partial sums in f32 (partials.hpp), which runs of f16 and bf16 in memory of the host keep at a time. More than
  // caches hold takes longer, less holds up peers that are far away (docs/performance.md).
  std::uint64_t partials_bytes = 8 << 20;
  // How often a run asks those that it waits for whether they live, and whom they wait for themselves, at first after a
  // sixteenth of it; and how long one may stay silent until it is lost. A peer that is stopped, cut off or gone without
  // a word is found like that.
  std::chrono::milliseconds inquiry{200};
  std::chrono::milliseconds silence{5000};
  std::size_t early_runs = 64;  // runs of peers that may wait here for this rank's own call, per link
  // What lies in it reaches workers on the same host without a copy, and everything else through it. Null: tcp only.
  // Outlives the data plane.
  memory::Arena* arena = nullptr;
  // Memory of GPUs that runs lie in is lent to peers of this host, which read it where it lies, and theirs is read: the
  // GPUs of all runs outlive the data plane then. The number is this host's (links/host_number.hpp); nothing: nobody
  // reads anybody's.
  std::optional<std::uint64_t> lending_host;
  // What peers get to see when a link is opened; outlives the data plane.
  http::Credentials const* credentials = nullptr;
  // Of the frames on connections. Shared memory has none.
  links::ChecksumMode checksums = links::ChecksumMode::automatic;
  // Told of runs that stand still, and asked by groups to keep their calls. Null: nobody is told. Outlives the data
  // plane.
  FlightRecorder* flights = nullptr;
  // Called when a link with this worker turns out to go without shared memory, and with each new reason. From several
  // threads, one at a time; calls nothing of the data plane.
  std::function<void(std::string const& worker, std::string const& why)> on_link_without_shm;
  // The same of a worker on this host whose GPU does not read this one's memory where it lies, or the other way round.
  std::function<void(std::string const& worker, std::string const& why)> on_link_without_ipc;
};

class DataPlane {
 public:
  explicit DataPlane(DataPlaneOptions options);  // starts the thread
  ~DataPlane();                                  // aborts what runs, closes the links, joins the thread
  DataPlane(DataPlane const&) = delete;
  DataPlane& operator=(DataPlane const&) = delete;

  // Any thread. `done` is called exactly once, also when the run fails at once or the data plane is destroyed.
  void start(RunSpec spec, RunDone done);

  // Any thread but the data thread. Begins the next run of the kind, and waits for its end. Meanwhile this thread does
  // the data thread's work, for all runs and links, unless another caller does so already. A run that is interrupted
  // before it begins does not begin; whoever interrupts it later aborts it as well. The interruption, if there is one,
  // outlives the call.
  [[nodiscard]] RunResult run(std::shared_ptr<RunKind> const& kind, RunCall const& call,
                              Interruption const* interruption = nullptr);

  // Any thread. This rank will not start the run after all: its members are told why, and those that wait for it end.
  // Of the spec only what identifies the run counts: run, epoch, token, members, and the own rank.
  void give_up(RunSpec const& spec, plan::Rank rank, Error const& why);

  // Any thread. Ends the run on this rank with `why` and tells its peers; nothing if it has ended. One that has not
  // been started here will not be, and peers that have opened it, or will, are told.
  void abort(std::uint64_t run, Error why);

  // Any thread. The answer to GET /v1/link of a peer that introduced itself: 101, which brings the connection here, or
  // a problem. The data plane outlives its sending.
  [[nodiscard]] http::Response welcome(links::Introduction const& peer);

  // Any thread. Links of older incarnations of this worker id are closed and refused from now on.
  void fence(std::string const& worker, std::uint64_t incarnation);

  // Any thread. An epoch of a group is over: who opens a run of it here, or waits with one, is refused from now on.
  void retire(Retired epoch);

  // Any thread.
  [[nodiscard]] std::vector<PeerTraffic> traffic() const;
  [[nodiscard]] FlightRecorder* flights() const;

  // Any thread. Where the runs stand that are under way: all, or this one. `answer` is called once, on the data thread
  // or one that does its work, unless the data plane is destroyed before.
  void ask_progress(std::optional<std::uint64_t> run, std::function<void(std::vector<RunProgress>)> answer);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::engine
