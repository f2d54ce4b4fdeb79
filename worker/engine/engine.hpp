// Runs programs over links on one thread. The engine knows neither sockets nor threads: DataPlane supplies them, and
// tests supply others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/gpu/borrowed_arenas.hpp"
#include "worker/engine/inquiries.hpp"
#include "worker/engine/messages/message_transfers.hpp"
#include "worker/engine/run/device_runs.hpp"
#include "worker/engine/run/exchange_runs.hpp"
#include "worker/engine/run/run_ends.hpp"
#include "worker/engine/run/run_table.hpp"
#include "worker/engine/run/unrested_runs.hpp"
#include "worker/engine/trace/traffic.hpp"
#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/connection_table.hpp"
#include "worker/engine/transport/memory_health.hpp"
#include "worker/engine/transport/surroundings.hpp"

namespace chorus::engine {

class Engine final : public ConnectionOwner {
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
  // of its link while nothing else is under way: its bytes. Empty: nothing has happened.
  [[nodiscard]] std::optional<std::uint64_t> send_at_once(MessageGroup& group, MessageRequest const& request) {
    if (!transfers_.messages().send_at_once(group, request)) return std::nullopt;
    return request.sent.size();
  }
  [[nodiscard]] std::optional<std::uint64_t> receive_at_once(MessageGroup& group, MessageRequest const& request,
                                                             unsigned polls) {
    return is_busy() ? std::nullopt : transfers_.receive_at_once(group, request, polls);
  }
  void close_messages(MessageGroup& group, Failure const& why);
  // See Messages.
  void watch_receives(bool all);
  [[nodiscard]] bool has_unwatched_receives() const { return transfers_.messages().has_unwatched(); }
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
  [[nodiscard]] TimePoint next_deadline();
  void check_deadlines();

  // Advances every run and link that can go on. Safe to call at any time, also from within.
  void settle() override;

  // Advances runs whose GPUs have finished work. Returns true if any had.
  bool poll_devices();
  // True while GPUs work for runs that go on, or did at the last poll.
  [[nodiscard]] bool awaits_devices() const { return device_runs_.are_at_work(); }

  // Progress of all runs that are under way, or of the given one.
  [[nodiscard]] std::vector<RunProgress> progress(std::optional<std::uint64_t> run) { return inquiries_.progress(run); }

  // True while a run is under way or at rest, or a receive waits.
  [[nodiscard]] bool is_busy() const {
    return !runs_.all().empty() || runs_.exchange().run != nullptr || !unrested_.empty() || has_unwatched_receives();
  }
  [[nodiscard]] std::size_t links() const { return connections_.size(); }

 private:
  // The interface of connections (ConnectionOwner).
  [[nodiscard]] Run* find_run(std::uint64_t run) override { return runs_.find(run); }
  [[nodiscard]] EndedRun const* find_ended(std::uint64_t run) const override { return runs_.find_ended(run); }
  [[nodiscard]] Retired const* find_retired(std::uint64_t token, std::uint32_t epoch) const override {
    return retired_.find(token, epoch);
  }
  void touch(std::uint64_t run) override;
  void heard(std::uint64_t run, plan::Rank rank) override;
  void asked(Connection& by, std::uint64_t run, std::uint32_t epoch, links::Ask const& ask) override {
    inquiries_.asked(by, run, epoch, ask);
  }
  void told(Identity const& by, std::uint64_t run, links::Tell tell) override {
    inquiries_.told(by, run, std::move(tell));
  }
  void lost_touch(Identity const& peer, std::uint64_t run, Error const& why) override {
    inquiries_.lost_touch(peer, run, why);
  }
  void fail_awaiting(Identity const& peer, Error const& why) override;
  void fail_run(std::uint64_t run, Failure failure) override { ends_.fail(run, std::move(failure)); }
  void fail_for(Error const& why, std::uint64_t run, plan::Rank rank, std::string const& where) override {
    ends_.fail_for(why, run, rank, where);
  }
  void end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                     Failure failure) override {
    ends_.end_unstarted(run, epoch, failure_notice, std::move(failure));
  }
  [[nodiscard]] bool awaits_coalesced_frame(std::uint64_t run) const override {
    return runs_.awaits_coalesced_frame(run);
  }
  [[nodiscard]] bool exchange_takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender,
                                    Scratch scratch) override {
    return exchanges_.take(coalesced_frame, sender, scratch);
  }
  void unfold_any_exchange() override { runs_.unfold_exchange(); }
  void unfold_exchange_of(std::uint64_t run) override {
    if (runs_.awaits_coalesced_frame(run)) runs_.unfold_exchange();
  }
  [[nodiscard]] bool memory_is_unsound() const override { return memory_.is_unsound(); }
  [[nodiscard]] bool has_device_runs() const override { return !runs_.on_devices().empty(); }
  void look_for_standstill() override;
  [[nodiscard]] Borrowed borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend,
                                links::Borrow& told) override {
    return device_runs_.borrow(spec, peer, lend, told);
  }
  void forget_borrowed(Identity const& owner) override { borrowed_arenas_.forget(owner); }
  void decide(std::uint64_t run) override;

  void message_arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                       links::Envelope const& envelope, std::uint64_t run) override;
  [[nodiscard]] bool message_frame_arrived(Identity const& from, links::MessageFrame const& message) override;
  void message_failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) override;

  void try_start(RunSpec spec, RunDone done, std::shared_ptr<RunKind> kind);
  // Checks that the run may start; the spec itself is valid. If not, calls `done` with the reason and returns false.
  [[nodiscard]] bool may_start(std::uint64_t run, RunSpec const& spec, RunDone const& done);
  void begin(std::unique_ptr<Run> run);
  // Works on the runs that can go on. Returns true if local work is left.
  bool work_on_runs();
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

  MemoryHealth const memory_;
  RunTable runs_;
  ConnectionTable connections_;
  RetiredEpochs retired_;
  BorrowedArenas borrowed_arenas_;
  UnrestedRuns unrested_;
  RunEnds ends_;
  ExchangeRuns exchanges_;
  DeviceRuns device_runs_;
  Inquiries inquiries_;
  MessageTransfers transfers_;
  TimePoint told_deadline_ = TimePoint::max();  // by next_deadline(): a later one needs no other timer
  bool held_ = false;                           // settle() returns at once: a caller further up the stack settles later
};

}  // namespace chorus::engine
