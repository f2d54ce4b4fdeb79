// One collective as this rank executes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/channels/send_channel.hpp"
#include "worker/engine/failure/failure.hpp"
#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/gpu/gpu_steps.hpp"
#include "worker/engine/liveness/peer_watch.hpp"
#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/program/run_state.hpp"
#include "worker/engine/program/workspace.hpp"
#include "worker/engine/run/pair_exchange.hpp"
#include "worker/engine/run/run_kind.hpp"
#include "worker/engine/trace/progress.hpp"
#include "worker/engine/trace/timeline.hpp"
#include "worker/engine/transport/data_plane_options.hpp"
#include "worker/engine/transport/run_on_links.hpp"

namespace chorus::engine {

// Used on the data thread only. The constructor allocates everything; work per segment allocates nothing.
class Run final : public RunOnLinks {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // check(spec) is ok. `device` has begun for this spec if the spec has a GPU, and is null otherwise. The clock
  // outlives the run.
  Run(RunSpec spec, RunDone done, std::unique_ptr<DeviceWork> device, DataPlaneOptions const& options, Clock& clock);
  Run(Run const&) = delete;
  Run& operator=(Run const&) = delete;

  // Starts the next run of the kind, with buffers of the same sizes. Call on a run on the host that has ended well.
  void begin(RunCall const& call, RunDone done, TimePoint now);
  [[nodiscard]] bool fits(RunCall const& call) const;
  // The deadline may come before the first ask to the peers.
  [[nodiscard]] bool is_short() const { return spec_.deadline - started_ < 2 * watch_.first_inquiry(); }
  // The run is on the host, and takes little memory to keep.
  [[nodiscard]] bool is_small() const { return is_small_; }

  // begin() in two steps, for a run whose exchange() is not null: begin_exchange(), then the caller sends
  // exchange()->sent, then exchange_sent() when the link has taken it. After that only spec() and next_deadline() may
  // be used, until takes() and end_exchange() complete the run, or unfold() makes it an ordinary run whose link has
  // taken that much.
  [[nodiscard]] PairExchange const* exchange() const { return exchange_ ? &*exchange_ : nullptr; }
  void begin_exchange(RunCall const& call, TimePoint now);
  void exchange_sent(RunDone done, TimePoint at);
  // Takes the peer's message into place. False if the frame is not the one that the exchange waits for.
  [[nodiscard]] bool takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender, Scratch scratch);
  [[nodiscard]] RunResult end_exchange(TimePoint arrived);
  [[nodiscard]] RunDone take_done() { return std::move(done_); }
  void unfold(links::Taken taken);

  [[nodiscard]] RunSpec const& spec() const override { return spec_; }
  [[nodiscard]] std::vector<std::unique_ptr<SendChannel>> const& sends() const { return sends_; }
  [[nodiscard]] std::vector<std::unique_ptr<ReceiveChannel>> const& receives() const { return receives_; }

  // Advances every instruction that can go on: local work up to about `budget_bytes`; sends and grants by scheduling
  // their channels with the connections. Returns true if local work is left.
  bool work(std::uint64_t budget_bytes);
  // True if all instructions are done, all bytes are handed over, and every peer's open has matched.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] Answer judge(links::DecodedOpen const& decoded, std::uint32_t epoch, Identity const& sender) override;
  // Rank of this identity in the run; empty if it is no member.
  [[nodiscard]] std::optional<plan::Rank> rank_of(std::string const& worker, std::uint64_t incarnation) const {
    return engine::rank_of(spec_, worker, incarnation);
  }

  // Watches the peers that the run waits for.
  [[nodiscard]] PeerWatch& watch() { return watch_; }
  [[nodiscard]] PeerWatch const& watch() const { return watch_; }
  // When to check expired() and the watch next.
  [[nodiscard]] TimePoint next_deadline() const { return watch_.next_deadline(); }
  // The failure with its culprits, if the deadline has passed.
  [[nodiscard]] std::optional<Failure> expired(TimePoint now);

  // Checks for progress since the last check; returns how long nothing has moved.
  std::chrono::nanoseconds look_for_progress(TimePoint now);
  [[nodiscard]] RunProgress progress(TimePoint now) const;

  // "rank 2 (w2)"
  [[nodiscard]] std::string name_of(plan::Rank rank) const { return engine::name_of(spec_, rank); }
  // Description of the run; stays valid after the run.
  [[nodiscard]] std::shared_ptr<std::string const> const& description() const { return description_; }

  [[nodiscard]] bool has_device() const { return device_ != nullptr; }
  // Handles completed device work. True if there was any, or if the device has failed.
  bool poll_device() { return device_->poll(); }
  [[nodiscard]] bool is_device_at_work() const { return device_->is_at_work(); }
  [[nodiscard]] std::optional<Failure> device_failure() const override;
  // For a run that is over: the device has finished all work of the run.
  [[nodiscard]] bool device_rests() { return device_ == nullptr || device_->rests(); }
  // For a run that is over: no peer reads what it has lent.
  [[nodiscard]] bool has_back_what_it_lent(TimePoint now) const;
  // True if the run reads memory of peers in place.
  [[nodiscard]] bool reads_in_place() const;
  [[nodiscard]] bool writes_with(plan::Rank peer) const override;
  [[nodiscard]] std::optional<bool> may_be_written(ReceiveChannel const& channel,
                                                   links::Lend const& lend) const override;

  // Calls `done`. Memory::goes: device and peers rest; nothing of the run is used afterwards, and its memory may be
  // freed. Memory::stays: device or peers did not come to rest before the device counted as lost; what they may still
  // use stays with the run.
  enum class Memory : std::uint8_t { goes, stays };
  void end(std::optional<Failure> const& failure, TimePoint now, Memory memory);
  // The run is over, and ends when device and peers rest.
  void stop() { ended_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }

  bool is_queued = false;            // in the engine's list, to be worked on
  bool is_stalled = false;           // as reported to the flight recorder
  bool has_given_back = false;       // the memory borrowed from peers
  std::shared_ptr<RunKind> of_kind;  // keeps the run if it ends well; null: not kept

 private:
  void prepare_channels();
  [[nodiscard]] bool takes_little() const;
  [[nodiscard]] std::optional<PairExchange> as_exchange(std::uint64_t incarnation) const;
  void begin_memory(RunCall const& call, TimePoint now);
  void begin_parts();
  [[nodiscard]] std::unique_ptr<SendChannel> send_channel(std::uint32_t c, std::vector<std::uint32_t> sends,
                                                          links::Open const& open, ReceiveChannel const* back);
  [[nodiscard]] std::unique_ptr<ReceiveChannel> receive_channel(std::uint32_t c, std::vector<std::uint32_t> receives,
                                                                std::uint64_t digest);
  bool work_on_host(std::uint64_t budget_bytes);
  bool work_on_device();
  // The failure if the device has had work for a long time and finished none of it.
  [[nodiscard]] std::optional<Failure> device_is_late(TimePoint now) const;
  void go_on(std::uint32_t instruction);

  RunSpec spec_;
  std::shared_ptr<std::string const> description_;
  RunDone done_;
  TimePoint started_;
  Timeline timeline_;
  std::unique_ptr<DeviceWork> device_;  // null on the host
  std::optional<Workspace> workspace_;  // empty on a device
  RunState state_;
  std::optional<GpuSteps> device_steps_;  // set with device_
  std::vector<std::unique_ptr<SendChannel>> sends_;
  std::vector<std::unique_ptr<ReceiveChannel>> receives_;
  struct Place {
    std::uint32_t channel = 0;  // index into sends_ or receives_
    std::uint32_t message = 0;
  };
  std::vector<Place> places_;  // by instruction, for those that send or receive
  bool is_small_ = false;
  std::optional<PairExchange> exchange_;
  PeerWatch watch_;
  std::uint64_t progress_seen_ = 0;
  TimePoint still_since_;
  bool ended_ = false;
};

}  // namespace chorus::engine
