// Runs programs over links on one thread. The engine knows neither sockets nor threads: DataPlane supplies them, and
// tests supply others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/bounded_map.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/gpu/borrowed_arenas.hpp"
#include "worker/engine/messages/messages.hpp"
#include "worker/engine/run/run.hpp"
#include "worker/engine/run/unrested_runs.hpp"
#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/connection_table.hpp"
#include "worker/engine/transport/surroundings.hpp"
#include "worker/engine/transport/traffic.hpp"

namespace chorus::engine {

class Engine final : public ConnectionOwner, private MessageRuns {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Surroundings and traffic book outlive the engine. Other threads may read the book.
  Engine(DataPlaneOptions options, Surroundings& surroundings, TrafficBook& traffic);
  ~Engine();  // call shut_down() first

  // See the functions of the same names in DataPlane.
  void start(RunSpec spec, RunDone done);
  void start(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done);
  void abort(std::uint64_t run, Error why);
  void give_up(RunSpec const& spec, plan::Rank rank, Error const& why);
  void begin_message(std::shared_ptr<MessageGroup> const& group, MessageRequest const& request, MessageDone done);
  // begin_message() for a small message that is sent at once, or that comes through shared memory within so many polls
  // of its link while nothing else is under way. False: nothing has happened.
  [[nodiscard]] bool send_at_once(MessageGroup& group, MessageRequest const& request, MessageResult& result);
  [[nodiscard]] bool receive_at_once(MessageGroup& group, MessageRequest const& request, unsigned polls,
                                     MessageResult& result);
  void close_messages(MessageGroup& group, Failure const& why);
  // See Messages.
  void watch_receives(bool all);
  [[nodiscard]] bool has_unwatched_receives() const { return messages_.has_unwatched(); }
  // `back`: second link on the same connection, for messages to the peer; null if there is none.
  void adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends = false,
             std::shared_ptr<links::Link> back = nullptr);
  void fence(std::string const& worker, std::uint64_t incarnation);
  void retire(Retired epoch);
  // Ends all runs with `aborted`; later starts fail at once. Peers are told, and give back what they borrowed.
  void stop();
  // True while a peer may still read memory of a run that has ended here. Polled for a while after stop().
  [[nodiscard]] bool has_lent() const { return unrested_.has_lent(); }
  // Calls stop() and closes all links.
  void shut_down();

  // Answers Surroundings::dial. The detail of an error names the URL. `lends`: both ends agreed that opens may lend
  // memory of GPUs. `back`: second link on the same connection, for messages from the peer; null if there is none.
  void dialed(std::uint64_t send_connection, Result<std::shared_ptr<links::Link>> link, bool lends = false,
              std::shared_ptr<links::Link> back = nullptr);

  // Ends runs whose deadline has passed. Call at next_deadline() (TimePoint::max() when nothing runs) or later.
  [[nodiscard]] TimePoint next_deadline() const;
  void check_deadlines();

  // Advances every run and link that can go on. Safe to call at any time, also from within.
  void settle() override;

  // Advances runs whose GPUs have finished work. Returns true if any had.
  bool poll_devices();
  // True while GPUs work for runs that go on, or did at the last poll.
  [[nodiscard]] bool awaits_devices() const;

  // Progress of all runs that are under way, or of the given one.
  [[nodiscard]] std::vector<RunProgress> progress(std::optional<std::uint64_t> run);

  // True while a run is under way or at rest, or a receive waits.
  [[nodiscard]] bool is_busy() const {
    return !runs_.empty() || exchange_.run != nullptr || !unrested_.empty() || messages_.has_unwatched();
  }
  [[nodiscard]] std::size_t links() const { return connections_.size(); }

 private:
  static constexpr std::size_t ended_max = 1024;

  // A process that was stopped for this long discards what it has read in place: the lender may have reused the memory.
  static constexpr std::chrono::seconds standstill{5};

  // The interface of connections (ConnectionOwner).
  [[nodiscard]] Run* find_run(std::uint64_t run) override;
  [[nodiscard]] EndedRun const* find_ended(std::uint64_t run) const override { return ended_.find(run); }
  [[nodiscard]] Retired const* find_retired(std::uint64_t token, std::uint32_t epoch) const override {
    return retired_.find(token, epoch);
  }
  void touch(std::uint64_t run) override;
  void heard(std::uint64_t run, plan::Rank rank) override;
  void asked(Connection& by, std::uint64_t run, std::uint32_t epoch, links::Ask const& ask) override;
  void told(Identity const& by, std::uint64_t run, links::Tell tell) override;
  void lost_touch(Identity const& peer, std::uint64_t run, Error const& why) override;
  void fail_awaiting(Identity const& peer, Error const& why) override;
  void fail_run(std::uint64_t run, Failure failure) override;
  void fail_for(Error const& why, std::uint64_t run, plan::Rank rank, std::string const& where) override;
  void end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                     Failure failure) override;
  [[nodiscard]] bool awaits_coalesced_frame(std::uint64_t run) const override {
    return exchange_.run != nullptr && !exchange_.has_arrived && exchange_.run->spec().run == run;
  }
  [[nodiscard]] bool exchange_takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender,
                                    Scratch scratch) override;
  void unfold_any_exchange() override { unfold_exchange(links::Taken::whole); }
  void unfold_exchange_of(std::uint64_t run) override {
    if (awaits_coalesced_frame(run)) unfold_any_exchange();
  }
  [[nodiscard]] bool memory_is_unsound() const override;
  [[nodiscard]] bool has_device_runs() const override { return !device_runs_.empty(); }
  void look_for_standstill() override;
  [[nodiscard]] Borrowed borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend,
                                links::Borrow& told) override;
  void forget_borrowed(Identity const& owner) override { borrowed_arenas_.forget(owner); }
  void decide(std::uint64_t run) override;

  void message_arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                       links::Envelope const& envelope, std::uint64_t run) override;
  [[nodiscard]] bool message_frame_arrived(Identity const& from, links::MessageFrame const& message) override;
  void message_failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) override;

  // The interface of messages (MessageRuns).
  void start_run(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done) override {
    start(std::move(kind), call, std::move(done));
  }
  void end_watch(std::uint64_t run) override;
  void fail_message(std::uint64_t run, Failure const& why) override { fail_run(run, why); }
  void refuse_message(std::uint64_t run, Failure const& why) override;
  void find_early_messages(std::uint64_t token, std::uint32_t epoch) override;
  [[nodiscard]] bool send_small_message(MessageGroup& group, links::MessageFrame const& message) override;
  void refuse_small_messages(Identity const& peer, GroupMembership const& membership, Failure const& why) override;
  void watch_soon() override;

  [[nodiscard]] ConnectionTable::Route const& route(MessageGroup& group, plan::Rank peer);

  // Asks the ranks that the run waits for, and ends the run if one of them has been silent for too long.
  void inquire(Run& run, TimePoint now);
  // Tells the flight recorder when a run begins to stand still, and when it goes on.
  void look_for_stall(Run& run, TimePoint now);
  [[nodiscard]] Connection& connection_to(Run& run, plan::Rank rank);
  // Ends a run that was not started here and never will be. Data that peers have sent is dropped, and they are told.
  void end_before_start(std::uint64_t run, Failure const& failure);
  void end_run(Run& run, std::optional<Failure> failure);
  void fail_all(Failure const& failure);
  [[nodiscard]] std::optional<Failure> unsound_memory() const;
  void try_start(RunSpec spec, RunDone done, std::shared_ptr<RunKind> kind);
  // Checks that the run may start; the spec itself is valid. If not, calls `done` with the reason and returns false.
  [[nodiscard]] bool may_start(std::uint64_t run, RunSpec const& spec, RunDone const& done);
  void begin(std::unique_ptr<Run> run);
  // Adds the run to runs_. The channels of the run are not attached to their send connections yet.
  Run& list(std::unique_ptr<Run> run);
  [[nodiscard]] EndedRun& remember(Run const& run);
  // Starts the next run of `kept` as an exchange, which sends its message at once. False if that is impossible: `kept`
  // and `done` are unchanged, and the run is to begin in the ordinary way.
  [[nodiscard]] bool begin_exchange(std::unique_ptr<Run>& kept, RunCall const& call, RunDone& done);
  void end_exchange();
  // Makes the exchange under way an ordinary run. `taken`: how much of its message the link has taken.
  void unfold_exchange(links::Taken taken);
  // Device work of the run; null if the run has no GPU. Empty if the GPU refused: then caller and peers have been told.
  [[nodiscard]] std::optional<std::unique_ptr<DeviceWork>> begin_device(RunSpec const& spec, RunDone const& done);
  void reject(RunDone const& done, Failure const& why);
  void reap();

  // Blocks settle(), and so the destruction of runs and connections, until the end of the scope; nests.
  class Hold {
   public:
    explicit Hold(Engine& engine) : engine_(engine), before_(engine.held_) { engine.held_ = true; }
    ~Hold() { engine_.held_ = before_; }
    Hold(Hold const&) = delete;
    Hold& operator=(Hold const&) = delete;

   private:
    Engine& engine_;
    bool const before_;
  };

  // Few entries; lookup by number is the most frequent operation.
  struct Numbered {
    std::uint64_t number = 0;
    std::unique_ptr<Run> run;
  };
  std::vector<Numbered> runs_;
  ConnectionTable connections_;
  RetiredEpochs retired_;
  BoundedMap<EndedRun, ended_max> ended_;

  // The one run outside runs_: an exchange that has sent its message. Nothing else has happened to the run, except that
  // the peer's message may have arrived: then the run ends as soon as no call is under way.
  struct UnderWay {
    std::unique_ptr<Run> run;
    SendConnection* send_connection = nullptr;
    bool has_arrived = false;
  };
  UnderWay exchange_;

  OnceQueue<Run> dirty_runs_;
  std::vector<std::unique_ptr<Run>> dead_runs_;  // destroyed when no call is under way
  std::vector<Run*> device_runs_;                // runs of runs_ that use a GPU
  BorrowedArenas borrowed_arenas_;
  UnrestedRuns unrested_;
  Messages messages_;
  bool held_ = false;  // settle() returns at once: a caller further up the stack settles later
};

}  // namespace chorus::engine
