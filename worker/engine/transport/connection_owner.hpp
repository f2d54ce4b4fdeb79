// What connections need from the engine that owns them: its runs, its settings, and flushing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/failure/failure.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/engine/trace/traffic.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/data_plane_options.hpp"
#include "worker/engine/transport/once_queue.hpp"
#include "worker/engine/transport/run_on_links.hpp"
#include "worker/engine/transport/surroundings.hpp"
#include "worker/links/frames/inquiry.hpp"
#include "worker/links/frames/lending.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

// What is kept of a run that has ended here, or that a peer has given up before it was started here.
struct EndedRun {
  // Empty: the run was ended before any spec or open of it was seen, by a caller that needs no token.
  std::optional<std::uint64_t> token;
  std::uint64_t fingerprint = 0;
  std::shared_ptr<std::string const> description;  // null: not known
  std::optional<Failure> failure;
  bool was_started = false;
  bool was_message = false;  // sent one message of a group

  [[nodiscard]] bool has(std::uint64_t presented) const { return !token || *token == presented; }
};

// Used on the data thread only.
class ConnectionOwner {
 public:
  ConnectionOwner(ConnectionOwner const&) = delete;
  ConnectionOwner& operator=(ConnectionOwner const&) = delete;

  [[nodiscard]] DataPlaneOptions const& options() const { return options_; }
  [[nodiscard]] Surroundings& surroundings() { return surroundings_; }
  [[nodiscard]] TrafficBook& traffic() { return traffic_; }

  // Schedules a flush: the connection has something to write.
  void flush_soon(Connection& connection) { dirty_connections_.push(connection); }
  void connection_has_closed() { has_closed_ = true; }
  [[nodiscard]] bool is_shut_down() const { return shut_down_; }
  // Advances every run and link that can go on. Safe to call at any time, also from within.
  virtual void settle() = 0;

  // The run of this number if it is under way; null otherwise.
  [[nodiscard]] virtual RunOnLinks* find_run(std::uint64_t run) = 0;
  [[nodiscard]] virtual EndedRun const* find_ended(std::uint64_t run) const = 0;
  [[nodiscard]] virtual Retired const* find_retired(std::uint64_t token, std::uint32_t epoch) const = 0;
  // True if the run needs the link no more: everything of this channel has moved, and neither side writes into the
  // other's memory.
  template <class Channel>
  [[nodiscard]] bool outlives_link(Channel const& channel) {
    auto const* const run = find_run(channel.run());
    return channel.finished() && (run == nullptr || !run->writes_with(channel.peer()));
  }

  // The run can go on: schedules work on it.
  virtual void touch(std::uint64_t run) = 0;
  virtual void heard(std::uint64_t run, plan::Rank rank) = 0;
  // asked: a peer wants to know what this rank does in the run. told: a peer has answered. lost_touch: the link ended
  // on which the run had asked.
  virtual void asked(Connection& by, std::uint64_t run, std::uint32_t epoch, links::Ask const& ask) = 0;
  virtual void told(Identity const& by, std::uint64_t run, links::Tell tell) = 0;
  virtual void lost_touch(Identity const& peer, std::uint64_t run, Error const& why) = 0;

  // Fails the runs that wait for an open from this peer.
  virtual void fail_awaiting(Identity const& peer, Error const& why) = 0;
  virtual void fail_run(std::uint64_t run, Failure failure) = 0;
  // Fails the run because the link to this rank ended while it was needed for `where`.
  virtual void fail_for(Error const& why, std::uint64_t run, plan::Rank rank, std::string const& where) = 0;
  // A peer has given up a run that was not started here and is not yet recorded as ended, or its open finds no room
  // here.
  virtual void end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                             Failure failure) = 0;

  // The open of a message waits in a receive connection for the receive that it belongs to.
  virtual void message_arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                               links::Envelope const& envelope, std::uint64_t run) = 0;
  // A message frame has arrived. False: no member here has begun with the messages of its epoch.
  [[nodiscard]] virtual bool message_frame_arrived(Identity const& from, links::MessageFrame const& message) = 0;
  // A message of the group's epoch has failed that no run stands for: its sender has given it up or is lost, or its
  // receiver has refused it after it was sent.
  virtual void message_failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) = 0;

  // True if the run is an exchange that waits for its coalesced frame.
  [[nodiscard]] virtual bool awaits_coalesced_frame(std::uint64_t run) const = 0;
  [[nodiscard]] virtual bool exchange_takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender,
                                            Scratch scratch) = 0;
  // Another event has happened, for any run or for this one: the exchange becomes an ordinary run.
  virtual void unfold_any_exchange() = 0;
  virtual void unfold_exchange_of(std::uint64_t run) = 0;

  // Shared memory has lost its pages: nothing is sent from it.
  [[nodiscard]] virtual bool memory_is_unsound() const = 0;
  [[nodiscard]] virtual bool has_device_runs() const = 0;
  // Call before using what was read in place, and before writing into a peer's memory.
  virtual void look_for_standstill() = 0;
  // Maps the memory that an open lends; `told` is the answer to the peer. Null: it cannot be read here.
  [[nodiscard]] virtual Borrowed borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend,
                                        links::Borrow& told) = 0;
  virtual void forget_borrowed(Identity const& owner) = 0;
  // Answers the opens of this run that were kept back until it is known how their messages are transferred.
  virtual void decide(std::uint64_t run) = 0;

 protected:
  ConnectionOwner(DataPlaneOptions options, Surroundings& surroundings, TrafficBook& traffic)
      : options_(std::move(options)), surroundings_(surroundings), traffic_(traffic) {}
  ~ConnectionOwner() = default;

  DataPlaneOptions const options_;
  Surroundings& surroundings_;
  TrafficBook& traffic_;
  OnceQueue<Connection> dirty_connections_;
  bool has_closed_ = false;  // a connection is to be destroyed
  bool shut_down_ = false;
};

}  // namespace chorus::engine
