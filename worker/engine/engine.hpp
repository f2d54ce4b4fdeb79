// Runs plans over links on one thread. Knows neither sockets nor threads: DataPlane gives it those, tests give it
// others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/clock.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/gpu/borrowed_arenas.hpp"
#include "worker/engine/inlet.hpp"
#include "worker/engine/latest_book.hpp"
#include "worker/engine/outlet.hpp"
#include "worker/engine/run.hpp"
#include "worker/engine/traffic.hpp"

namespace chorus::engine {

// What the engine needs from the world. All calls come from within the engine's own methods or its links' callbacks.
class Surroundings : public Clock {
 public:
  // Answers later, not from within this call, with Engine::dialed(outlet, ...), once.
  virtual void dial(std::uint64_t outlet, Peer const& peer, TimePoint deadline) = 0;
  // Calls Engine::settle() soon, after links had a chance to move: local work is left.
  virtual void settle_soon() = 0;
  // A run was started: Engine::next_deadline() may be earlier than before.
  virtual void deadline_changed() = 0;
  // Calls Engine::poll_devices() in a moment, and only once however often it is asked to: GPUs are at work.
  virtual void poll_devices_soon() = 0;

 protected:
  ~Surroundings() = default;
};

class Engine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Both outlive the engine. The book may be read by other threads.
  Engine(DataPlaneOptions options, Surroundings& surroundings, TrafficBook& traffic);
  ~Engine();  // after shut_down()
  Engine(Engine const&) = delete;
  Engine& operator=(Engine const&) = delete;

  // See DataPlane.
  void start(RunSpec spec, RunDone done);
  void start(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done);
  void abort(std::uint64_t run, Error why);
  void give_up(RunSpec const& spec, plan::Rank rank, Error const& why);
  // `back`: the other link on the same connection, for messages to the peer; null: there is none.
  void adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends = false,
             std::shared_ptr<links::Link> back = nullptr);
  void fence(std::string const& worker, std::uint64_t incarnation);
  void retire(Retired epoch);
  // All runs end with `aborted`, and everything later fails at once; peers are told, and give back what they borrowed.
  void stop();
  // A peer may still read memory of a run that has ended here. Asked after stop(), for a while.
  [[nodiscard]] bool has_lent();
  // Stops, and all links close.
  void shut_down();

  // The answer to Surroundings::dial. The detail of an error names the URL. `lends`: the handshake says that opens may
  // lend memory of GPUs. `back`: the other link on the same connection, for messages of the peer; null: there is none.
  void dialed(std::uint64_t outlet, Result<std::shared_ptr<links::Link>> link, bool lends = false,
              std::shared_ptr<links::Link> back = nullptr);

  // Ends runs whose time has come. Call at next_deadline() (TimePoint::max() when nothing runs) or later.
  [[nodiscard]] TimePoint next_deadline() const;
  void check_deadlines();

  // Goes on with everything that can go on. Safe to call at any time, also from within.
  void settle();

  // Goes on with what GPUs have done meanwhile. True if that was anything.
  bool poll_devices();
  // GPUs are at work for runs that go on, or have been until now.
  [[nodiscard]] bool awaits_devices() const;

  // Where the runs stand that are under way: all, or this one.
  [[nodiscard]] std::vector<RunProgress> progress(std::optional<std::uint64_t> run);

  // Something runs.
  [[nodiscard]] bool is_busy() const { return !runs_.empty() || exchange_.run != nullptr || !unrested_.empty(); }
  [[nodiscard]] std::size_t links() const { return outlets_.size() + inlets_.size(); }

 private:
  friend class Connection;
  friend class Inlet;
  friend class Outlet;

  // What is remembered of a run that has ended here, or that a peer has given up before it was started here.
  struct Ended {
    // Nothing: it was ended before anything was known of it, by who may end it whatever its token.
    std::optional<std::uint64_t> token;
    std::uint64_t fingerprint = 0;
    std::shared_ptr<std::string const> description;  // nothing: not known
    std::optional<Failure> failure;
    bool was_started = false;

    [[nodiscard]] bool has(std::uint64_t presented) const { return !token || *token == presented; }
  };
  static constexpr std::size_t ended_max = 1024;

  // A run that is over, but for what its GPU still does with its memory, or those of peers.
  struct Unrested {
    std::unique_ptr<Run> run;
    std::optional<Failure> failure;
    TimePoint give_up;
  };
  // No work of a run takes longer on a device that works.
  static constexpr std::chrono::seconds device_patience{10};
  // A process that has not run for so long reads no more in place: what was lent to it may be somebody else's by now.
  static constexpr std::chrono::seconds standstill{5};
  // How often to look at what never came to rest.
  static constexpr std::chrono::seconds stuck_pause{1};

  [[nodiscard]] DataPlaneOptions const& options() const { return options_; }
  [[nodiscard]] Run* find_run(std::uint64_t run);
  [[nodiscard]] Ended const* find_ended(std::uint64_t run) const { return ended_.find(run); }
  [[nodiscard]] Retired const* find_retired(std::uint64_t token, std::uint32_t epoch) const {
    return retired_.find(token, epoch);
  }
  void touch(std::uint64_t run);
  void heard(std::uint64_t run, plan::Rank rank);
  // A peer wants to know what this rank does in the run; one answers; the link on which it was asked ends.
  void asked(Connection& by, std::uint64_t run, std::uint32_t epoch, links::Ask const& ask);
  void told(Identity const& by, std::uint64_t run, links::Tell tell);
  void lost_touch(Identity const& peer, std::uint64_t run, Error const& why);
  // Asks those that the run waits for, and ends it if one of them has been silent for too long.
  void inquire(Run& run, TimePoint now);
  // Tells the flight recorder when a run begins to stand still, and when it goes on.
  void look_for_stall(Run& run, TimePoint now);
  [[nodiscard]] Connection& connection_to(Run& run, plan::Rank rank);
  // The runs in which this peer's open has not come.
  void fail_awaiting(Identity const& peer, Error const& why);
  void fail_run(std::uint64_t run, Failure failure);
  // It was not begun here, and will not be: what peers have sent of it is thrown away, and they are told.
  void end_before_start(std::uint64_t run, Failure const& failure);
  // The link to this rank ended while it was needed for `where`.
  void fail_for(Error const& why, std::uint64_t run, plan::Rank rank, std::string const& where);
  void end_run(Run& run, std::optional<Failure> failure);
  void fail_all(Failure const& failure);
  [[nodiscard]] bool memory_is_unsound() const;
  [[nodiscard]] std::optional<Failure> unsound_memory() const;
  void try_start(RunSpec spec, RunDone done, std::shared_ptr<RunKind> kind);
  // Whether nothing speaks against a run of this number and spec, which is right by itself; says so to `done` if not.
  [[nodiscard]] bool may_start(std::uint64_t run, RunSpec const& spec, RunDone const& done);
  void begin(std::unique_ptr<Run> run);
  // Its channels are not with their outlets yet.
  Run& list(std::unique_ptr<Run> run);
  [[nodiscard]] Ended& remember(Run const& run);
  // The next run of `kept` is an exchange that has sent what it sends. False: it is not; then `kept` is to begin as any
  // other, and `done` is as it was.
  [[nodiscard]] bool begin_exchange(std::unique_ptr<Run>& kept, RunCall const& call, RunDone& done);
  [[nodiscard]] bool awaits_parcel(std::uint64_t run) const {
    return exchange_.run != nullptr && !exchange_.has_arrived && exchange_.run->spec().run == run;
  }
  [[nodiscard]] bool exchange_takes(links::Parcel const& parcel, Identity const& sender, Scratch scratch);
  void end_exchange();
  // Something else happens than what it waits for, maybe to this run only. Its link has taken what it sends.
  void unfold_exchange(links::Taken taken = links::Taken::whole);
  void unfold_exchange(std::uint64_t run) {
    if (awaits_parcel(run)) unfold_exchange();
  }
  // What the run needs of its GPU; null without one. Nothing if it is not to be had: then everybody has been told.
  [[nodiscard]] std::optional<std::unique_ptr<DeviceWork>> begin_device(RunSpec const& spec, RunDone const& done);
  // Nothing of the run's memory is in use any more, here or by peers that it was lent to. Peers whose memory it has
  // borrowed get that back as soon as its own device rests.
  [[nodiscard]] bool rests(Run& run, TimePoint now);
  void give_back_borrowed(Run& run);
  // The memory that an open lends, and what the peer is told of it; null: what it lies in is not to be read here.
  [[nodiscard]] Borrowed borrow(Run const& run, Identity const& peer, links::Lend const& lend, links::Borrow& told);
  // Whether the run goes on without a link on which everything was said for this channel.
  template <class Channel>
  [[nodiscard]] bool outlives_link(Channel const& channel) {
    auto const* const run = find_run(channel.run());
    return channel.finished() && (run == nullptr || !run->writes_with(channel.peer()));
  }
  // Answers the opens of which it is known by now how their messages are taken.
  void decide(std::uint64_t run);
  bool poll_unrested();
  // Before anything that was read in place counts, and before anything is written there.
  void look_for_standstill();
  [[nodiscard]] bool has_device_runs() const { return !device_runs_.empty(); }
  void wait_until_devices_rest();
  void reject(RunDone const& done, Failure const& why);
  [[nodiscard]] Outlet& outlet_to(Peer const& peer, TimePoint deadline);
  [[nodiscard]] Outlet* find_outlet_to(Peer const& peer);  // null: it is to be dialed
  [[nodiscard]] Outlet& dial(Peer const& peer, TimePoint deadline);
  // Small messages of both sides go on the connection that one of them has dialed: the one of the smaller name.
  [[nodiscard]] Outlet& outlet_for(SendChannel const& channel, Peer const& peer, TimePoint deadline);
  [[nodiscard]] Outlet* find_outlet_for(SendChannel const& channel, Peer const& peer);
  [[nodiscard]] bool is_fenced(Identity const& peer) const;
  void bury();

  // Keeps settle() and everything that it may destroy away until the end of a block; nests.
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

  DataPlaneOptions const options_;
  Surroundings& surroundings_;
  TrafficBook& traffic_;
  // A few, found by their numbers more often than anything else.
  struct Numbered {
    std::uint64_t number = 0;
    std::unique_ptr<Run> run;
  };
  std::vector<Numbered> runs_;
  std::map<std::uint64_t, std::unique_ptr<Outlet>> outlets_;
  std::vector<std::unique_ptr<Inlet>> inlets_;
  std::uint64_t next_outlet_ = 1, next_inlet_ = 1;
  std::map<std::string, std::uint64_t> current_incarnation_;  // of fenced workers
  RetiredEpochs retired_;
  LatestBook<Ended, ended_max> ended_;

  // One run that is not in runs_: it has sent what it sends, and nothing that concerns it has happened since, except
  // that its message has come, and then it ends as soon as nothing is under way.
  struct UnderWay {
    std::unique_ptr<Run> run;
    Outlet* outlet = nullptr;
    bool has_arrived = false;
  };
  UnderWay exchange_;

  OnceQueue<Run> dirty_runs_;
  OnceQueue<Connection> dirty_connections_;
  std::vector<std::unique_ptr<Run>> dead_runs_;  // until no call is under way
  std::vector<Run*> device_runs_;                // those of runs_ that have a GPU
  BorrowedArenas borrowed_arenas_;
  std::vector<Unrested> unrested_;
  std::vector<std::unique_ptr<Run>> stuck_;  // that never came to rest
  TimePoint look_at_stuck_{};
  bool has_closed_ = false;  // a connection is to be buried
  bool held_ = false;        // settle() does nothing: somebody up the stack goes on when it is done
  bool shut_down_ = false;
};

}  // namespace chorus::engine
