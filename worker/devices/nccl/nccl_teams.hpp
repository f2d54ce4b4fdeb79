// Reductions and broadcasts by NCCL among several GPUs of one worker, each with one tensor.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/together.hpp"
#include "worker/devices/nccl/nccl_library.hpp"

namespace chorus::devices {

// Thread-safe. Runs one collective at a time, because collectives of several communicators on one GPU may deadlock. The
// GPUs outlive it. After a failure of NCCL, which the failed call reports, ready() stays false.
class NcclTeams {
 public:
  static constexpr std::size_t teams_max = 8;  // sets of GPUs with communicators, each of which takes GPU memory

  // Receives lines for the log, from any thread. Must not call this object.
  using Tell = std::function<void(std::string const& line, bool is_trouble)>;
  // patience: a collective that takes longer has failed.
  NcclTeams(std::shared_ptr<NcclLibrary const> library, Tell tell,
            std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~NcclTeams();  // waits until NCCL has made the communicators that are under way, or has failed to
  NcclTeams(NcclTeams const&) = delete;
  NcclTeams& operator=(NcclTeams const&) = delete;

  // Returns true if NCCL's reduction equals this worker's own, except for the order of additions. False for f16 and
  // bf16, which NCCL rounds at every step, and for min and max of floats, in which NCCL ignores NaNs.
  [[nodiscard]] static bool has(ReduceOp op, Dtype dtype);

  // Returns true if these GPUs, several and distinct, can work together now. The first call for a set of GPUs starts a
  // thread that makes their communicators, which takes seconds; no call waits for it. Meanwhile no GPUs work together,
  // because NCCL may make the driver wait for running work (NCCL's documentation, "Concurrency between NCCL and CUDA
  // calls").
  [[nodiscard]] bool ready(std::span<GpuUnit* const> units);
  // Waits until no communicators are being made; false at the deadline.
  [[nodiscard]] bool settled(std::chrono::steady_clock::time_point deadline);

  // result[i] = sources[0][i] op sources[1][i] op ..., in NCCL's order. Each source is on another GPU, and the result
  // on one of these. Waits for the end. ready() has been true for these GPUs before, but need not be any more. Errors:
  // GpuErrc with the device and NCCL's message; then no work is under way, the sources are unchanged, and the result is
  // undefined.
  [[nodiscard]] Status reduce(ReduceOp op, Dtype dtype, std::span<Placed const> sources, Placed result,
                              std::uint64_t elements);
  // Copies `from` to all of these places, each on another GPU; one of these is the source's GPU. Waits. Errors: as
  // above.
  [[nodiscard]] Status broadcast(Placed from, std::span<Placed const> to, std::uint64_t bytes);

 private:
  // A set of GPUs with their communicators, in the order of their numbers, which is also that of ranks.
  struct Team {
    enum class State : std::uint8_t { making, ready, gone };
    std::vector<int> devices;
    State state = State::making;
    std::vector<nccl::Communicator> communicators;
  };
  // One GPU's part of a collective: its communicator and queue.
  struct Part;
  using Still = std::unique_lock<std::shared_timed_mutex>;  // see Gpu::hold_still()
  using Call = std::function<nccl::Return(std::size_t part, nccl::Communicator communicator, void* queue)>;

  void make(Team& team);
  [[nodiscard]] bool is_making() const;  // locked
  [[nodiscard]] Status together(std::vector<GpuUnit*> const& units, char const* what, std::uint64_t bytes,
                                Call const& call);
  [[nodiscard]] Team* team_of(std::vector<GpuUnit*> const& units) const;
  [[nodiscard]] Status enqueue(std::vector<Part>& parts, char const* what, Call const& call, Still still) const;
  [[nodiscard]] Status wait(std::vector<Part>& parts, char const* what) const;
  [[nodiscard]] Error error_of(std::span<Part const> parts, char const* what, nccl::Return status) const;
  void give_up(Team& team, Error const& why);

  std::shared_ptr<NcclLibrary const> const library_;
  Tell const tell_;
  std::chrono::milliseconds const patience_;
  std::mutex working_;

  mutable std::mutex mutex_;  // of the members below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<std::thread> makers_;  // one per team
  bool is_closed_ = false;           // makers that are not done drop their communicators
  bool has_failed_ = false;
};

}  // namespace chorus::devices
