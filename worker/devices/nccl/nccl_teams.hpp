// What several GPUs of one worker do together by NCCL, each with one tensor: sums, and copies to all.
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

// Thread-safe; one collective at a time, for those of several communicators on one GPU may wait for each other. The
// GPUs outlive it. After a failure of NCCL, which the call reports that it ended, it is of no use any more.
class NcclTeams {
 public:
  static constexpr std::size_t teams_max = 8;  // sets of GPUs that have communicators: each takes memory there

  // tell: takes lines for the log, also on a thread of its own; it calls nothing here.
  using Tell = std::function<void(std::string const& line, bool is_trouble)>;
  // patience: no collective among GPUs that work takes longer.
  NcclTeams(std::shared_ptr<NcclLibrary const> library, Tell tell,
            std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~NcclTeams();  // waits until NCCL has made the communicators that it was asked for, or said that it cannot
  NcclTeams(NcclTeams const&) = delete;
  NcclTeams& operator=(NcclTeams const&) = delete;

  // Whether NCCL does the same as this worker's own reductions, but for the order of additions. Not f16 and bf16: these
  // are to be added in f32 and rounded once, and NCCL rounds them at every step. Not min and max of floats, which NCCL
  // takes without a NaN.
  [[nodiscard]] static bool has(ReduceOp op, Dtype dtype);

  // Whether these GPUs, of which there are several and none twice, can work together now. The first time that makes
  // communicators, beside: to find each other takes GPUs seconds, and nobody waits for it. Until that is done no GPUs
  // work together, for NCCL may have the driver wait for what is under way (its documentation, "Concurrency between
  // NCCL and CUDA calls").
  [[nodiscard]] bool ready(std::span<GpuUnit* const> units);
  // Until nothing of that is under way; false at the deadline.
  [[nodiscard]] bool settled(std::chrono::steady_clock::time_point deadline);

  // result[i] = sources[0][i] op sources[1][i] op ..., in NCCL's order. Each source is of another GPU, the result on
  // one of these. Waits. Errors: GpuErrc, with the device and NCCL's words; nothing is under way then. The result is
  // as good as lost, the sources are what they were. ready() has been true for these GPUs, but that may be over.
  [[nodiscard]] Status reduce(ReduceOp op, Dtype dtype, std::span<Placed const> sources, Placed result,
                              std::uint64_t elements);
  // Copies to all of these places, each of another GPU, and one of them that of the source. Waits. Errors: as above.
  [[nodiscard]] Status broadcast(Placed from, std::span<Placed const> to, std::uint64_t bytes);

 private:
  // Communicators of GPUs in the order of their numbers, which is that of ranks.
  struct Team {
    enum class State : std::uint8_t { making, ready, gone };
    std::vector<int> devices;
    State state = State::making;
    std::vector<nccl::Communicator> communicators;
  };
  // What one GPU has to do: by its communicator, on its queue.
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

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<std::thread> makers_;  // one per team
  bool is_closed_ = false;           // who is not done yet drops what it makes
  bool has_failed_ = false;
};

}  // namespace chorus::devices
