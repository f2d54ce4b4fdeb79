// One collective as this rank runs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure.hpp"
#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/gpu/gpu_steps.hpp"
#include "worker/engine/pair_exchange.hpp"
#include "worker/engine/progress.hpp"
#include "worker/engine/receive_channel.hpp"
#include "worker/engine/run_kind.hpp"
#include "worker/engine/run_state.hpp"
#include "worker/engine/send_channel.hpp"
#include "worker/engine/timeline.hpp"
#include "worker/engine/witness.hpp"
#include "worker/engine/workspace.hpp"

namespace chorus::engine {

struct Identity;

// What can be wrong with a spec by itself. Errors: EngineErrc::aborted with the reason.
[[nodiscard]] Status check(RunSpec const& spec);

// Everything is sized in the constructor; what happens per segment allocates nothing. Lives on the data thread.
class Run {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Ranks that wait only for ranks that were heard of give those who know better this long to name the culprit.
  static constexpr std::chrono::milliseconds grace{100};

  // check(spec) is ok. `device` has begun for this spec where there is a GPU, and is null otherwise. The clock outlives
  // the run.
  Run(RunSpec spec, RunDone done, std::unique_ptr<DeviceWork> device, DataPlaneOptions const& options, Clock& clock);
  Run(Run const&) = delete;
  Run& operator=(Run const&) = delete;

  // Of a run that has ended well, on the host: the next one that is alike, in memory as large as its own.
  void begin(RunCall const& call, RunDone done, TimePoint now);
  [[nodiscard]] bool fits(RunCall const& call) const;
  // Its deadline may come before it asks its peers whether they live.
  [[nodiscard]] bool is_short() const { return spec_.deadline - started_ < 2 * first_inquiry(); }
  // It is on the host, and takes little memory to be kept.
  [[nodiscard]] bool is_small() const { return is_small_; }

  // As begin(), of a run whose exchange() is not null, in two steps: then what that sends is to be sent, and a link has
  // taken it. Nothing but what it runs and when it wants to be asked again is known of it then, until takes() and after
  // that end_exchange(); or unfold(), and it is as any other run whose link has taken so much.
  [[nodiscard]] PairExchange const* exchange() const { return exchange_ ? &*exchange_ : nullptr; }
  void begin_exchange(RunCall const& call, TimePoint now);
  void exchange_sent(RunDone done, TimePoint at);
  // What the exchange waits for: it is in place. False: it is something else.
  [[nodiscard]] bool takes(links::Parcel const& parcel, Identity const& sender, Scratch scratch);
  [[nodiscard]] RunResult end_exchange(TimePoint arrived);
  [[nodiscard]] RunDone take_done() { return std::move(done_); }
  void unfold(links::Taken taken);

  [[nodiscard]] RunSpec const& spec() const { return spec_; }
  [[nodiscard]] std::vector<std::unique_ptr<SendChannel>> const& sends() const { return sends_; }
  [[nodiscard]] std::vector<std::unique_ptr<ReceiveChannel>> const& receives() const { return receives_; }

  // Goes on with every instruction that can: local work up to about `budget_bytes`, sends and grants by scheduling
  // their channels with the outlets and inlets. True if local work is left.
  bool work(std::uint64_t budget_bytes);
  // All instructions done, everything handed over, and every peer agreed that it runs the same.
  [[nodiscard]] bool finished() const;

  // What an open frame of a link from `worker` gets.
  struct Answer {
    ReceiveChannel* channel = nullptr;  // accepted; otherwise:
    Failure refusal;
    bool fails_the_run = false;  // the peer belongs to the run, and runs something else
  };
  [[nodiscard]] Answer judge(links::DecodedOpen const& decoded, std::uint32_t epoch, Identity const& sender);
  // Whether this identity is a member of the run.
  [[nodiscard]] std::optional<plan::Rank> rank_of(std::string const& worker, std::uint64_t incarnation) const;

  // A sign of life of a peer: its first open, grant or byte.
  void heard(plan::Rank rank);
  // When to ask expired() or lost_in_silence() next.
  [[nodiscard]] TimePoint next_deadline() const;
  [[nodiscard]] std::optional<Failure> expired(TimePoint now);

  // Whether the ranks that the run waits for are to be asked again.
  [[nodiscard]] bool wants_to_ask(TimePoint now) const { return now >= next_inquiry_; }
  [[nodiscard]] std::vector<plan::Rank> begin_inquiry(TimePoint now);
  // Before anybody is judged: if it should have asked long ago, it is this process that was silent.
  void look_for_own_silence(TimePoint now);
  [[nodiscard]] Witness& witness() { return *witness_; }  // after begin_inquiry()
  [[nodiscard]] bool has_asked() const { return witness_.has_value(); }
  // One of them has owed an answer for too long.
  [[nodiscard]] std::optional<Failure> lost_in_silence(TimePoint now) const;
  // Of a rank that has ended well, and whose link broke before what it sent was here.
  [[nodiscard]] std::optional<Failure> lost_on_the_way(std::function<bool(Peer const&)> const& has_link_from) const;
  // Where it waits for this rank to open the run; nothing if it does not.
  [[nodiscard]] std::optional<std::string> awaits_open_of(plan::Rank rank) const;
  // Who keeps it from ending, as far as is known; what a peer is told that asks.
  [[nodiscard]] std::optional<Suspect> suspect(TimePoint now) const;
  // What it waits for `rank` to do; nothing if it does not.
  [[nodiscard]] std::optional<std::string> waits_where(plan::Rank rank) const;

  // Looks whether anything has moved since it looked last, and gives for how long nothing has.
  std::chrono::nanoseconds look_for_progress(TimePoint now);
  [[nodiscard]] RunProgress progress(TimePoint now) const;

  // "rank 2 (w2)"
  [[nodiscard]] std::string name_of(plan::Rank rank) const;
  // What it runs, for whoever remembers the run when it is over.
  [[nodiscard]] std::shared_ptr<std::string const> const& description() const { return description_; }

  [[nodiscard]] bool has_device() const { return device_ != nullptr; }
  // Goes on with what the device has done meanwhile. True if that was anything, or if it has failed.
  bool poll_device() { return device_->poll(); }
  [[nodiscard]] bool is_device_at_work() const { return device_->is_at_work(); }
  [[nodiscard]] std::optional<Failure> device_failure() const;
  // Whether the device has nothing left of a run that goes on no more,
  [[nodiscard]] bool device_rests() { return device_ == nullptr || device_->rests(); }
  // and no peer reads what it has lent.
  [[nodiscard]] bool has_back_what_it_lent(TimePoint now) const;
  // Memory of peers.
  [[nodiscard]] bool reads_in_place() const;
  // One of the two still writes into the other's memory. Both of their links have to last for that: what is said on one
  // gives back what the other is about.
  [[nodiscard]] bool writes_with(plan::Rank peer) const;
  // Whether the peer is to write what it lends to where the channel has it; nothing: it has not said yet whether it
  // can.
  [[nodiscard]] std::optional<bool> may_be_written(ReceiveChannel const& channel, links::Lend const& lend) const;

  // Calls `done`. Nothing of the run is used afterwards, and its memory may be gone, where device and peers rest; where
  // they have not come to rest for so long that the device counts as lost, what they may still use stays with the run.
  enum class Memory : std::uint8_t { goes, stays };
  void end(std::optional<Failure> const& failure, TimePoint now, Memory memory);
  // It is over, and ends when device and peers rest.
  void stop() { ended_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }

  bool is_queued = false;            // with the engine, to be worked on
  bool is_stalled = false;           // as was told the flight recorder
  bool has_given_back = false;       // what it has borrowed
  std::shared_ptr<RunKind> of_kind;  // where it is kept if it ends well; null: nowhere

 private:
  void prepare_channels();
  [[nodiscard]] bool takes_little() const;
  [[nodiscard]] std::optional<PairExchange> as_exchange(std::uint64_t incarnation) const;
  void begin_memory(RunCall const& call, TimePoint now);
  void begin_parts();
  [[nodiscard]] std::chrono::milliseconds first_inquiry() const {
    return std::max(inquiry_ / 16, std::chrono::milliseconds(1));
  }
  [[nodiscard]] std::unique_ptr<SendChannel> send_channel(std::uint32_t c, std::vector<std::uint32_t> sends,
                                                          links::Open const& open, ReceiveChannel const* back);
  [[nodiscard]] std::unique_ptr<ReceiveChannel> receive_channel(std::uint32_t c, std::vector<std::uint32_t> receives,
                                                                std::uint64_t digest);
  bool work_on_host(std::uint64_t budget_bytes);
  bool work_on_device();
  // The device has had work for a while, and done nothing of it.
  [[nodiscard]] std::optional<Failure> device_is_late(TimePoint now) const;
  void go_on(std::uint32_t instruction);
  struct Wait {
    plan::Rank rank = 0;
    std::string where;
  };
  // Each rank once.
  [[nodiscard]] std::vector<Wait> waits() const;
  [[nodiscard]] std::optional<Suspect> suspect(Wait const& wait, TimePoint now) const;

  RunSpec spec_;
  std::shared_ptr<std::string const> description_;
  RunDone done_;
  TimePoint started_;
  Timeline timeline_;
  std::unique_ptr<DeviceWork> device_;  // either this one,
  std::optional<Workspace> workspace_;  // or this
  RunState state_;
  std::optional<GpuSteps> device_steps_;  // with the device
  std::vector<std::unique_ptr<SendChannel>> sends_;
  std::vector<std::unique_ptr<ReceiveChannel>> receives_;
  struct Place {
    std::uint32_t channel = 0;  // index into sends_ or receives_
    std::uint32_t message = 0;
  };
  std::vector<Place> places_;  // of instructions that send or receive
  bool is_small_ = false;
  std::optional<PairExchange> exchange_;
  std::vector<bool> heard_;  // by rank
  bool in_grace_ = false;
  std::chrono::milliseconds const inquiry_, silence_;
  std::chrono::milliseconds until_inquiry_;  // doubles up to inquiry_
  TimePoint next_inquiry_;
  std::optional<Witness> witness_;  // once somebody was asked
  std::uint64_t progress_seen_ = 0;
  TimePoint still_since_;
  bool ended_ = false;
};

}  // namespace chorus::engine
