// What both ends of a link have in common: a queue of notes (failure notices, asks and tells), reading of control
// frames, and membership in the engine's list of connections with something to write.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/trace/traffic.hpp"
#include "worker/links/frames/inquiry.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class ConnectionOwner;
class PeerCounters;

// The worker at the other end of a link.
struct Identity {
  std::string worker;
  std::uint64_t incarnation = 0;
  friend bool operator==(Identity const&, Identity const&) = default;
};

// Used on the data thread only; owned by the engine. A closed connection is destroyed when no call is under way.
class Connection : public links::LinkHandler {
 public:
  Connection(ConnectionOwner& owner, Identity peer);
  virtual ~Connection() = default;
  Connection(Connection const&) = delete;
  Connection& operator=(Connection const&) = delete;

  [[nodiscard]] Identity const& peer() const { return peer_; }
  [[nodiscard]] bool is_closed() const { return closed_; }

  // Attaches the link, which may fail at once. `lends`: both ends agree that opens lend memory of GPUs. Of two links on
  // one connection, the one that is `beside` is not counted in the traffic.
  enum class Place : bool { alone, beside };
  void attach(std::shared_ptr<links::Link> link, bool lends, Place place = Place::alone);

  // These queue a note, which overtakes all other frames.
  void send_ask(std::uint64_t run, std::uint32_t epoch, links::Ask const& ask);
  void send_tell(std::uint64_t run, std::uint32_t epoch, links::Tell const& tell);
  void send_failure_notice(links::FrameType type, std::uint64_t run, std::uint32_t epoch,
                           links::FailureNotice const& failure_notice);
  void send_borrow(std::uint64_t run, std::uint32_t epoch, links::Borrow const& borrow);
  void send_returned(std::uint64_t run, std::uint32_t epoch);
  void send_room(links::FrameHeader const& header, links::Place const& place);

  // The run has no channel on this connection and asks its peer all the same: it is told if the link ends.
  void depends(std::uint64_t run);
  // The second link of a connection that was dialed for the other direction; this direction may use another connection
  // too.
  [[nodiscard]] bool is_beside() const { return place_ == Place::beside; }
  // Number of frames sent and received so far.
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

  // Writes queued frames. Ends the link if the peer does not read its notes.
  void flush();
  // Ends the link after an attempt to write the queued failure notices; its runs fail.
  void fail(Error why);

  void link_rests() final;
  void link_closed(Error why) final;

  bool is_queued = false;  // in the engine's list, to be flushed

 protected:
  [[nodiscard]] bool has_notes() const { return !notes_.empty(); }
  [[nodiscard]] bool next_note(links::OutFrame& frame);
  void note_sent();
  void frame_moved() { ++moved_; }
  // Error if the frame names another epoch than the known run of its number.
  [[nodiscard]] Status check_epoch(links::FrameHeader const& header) const;
  // Handles the ask or tell that was collected.
  [[nodiscard]] Status inquiry_arrived();
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] bool may_lend() const { return lends_; }
  void touch();
  [[nodiscard]] links::Link* link() { return link_.get(); }

  // Collects the payload of a control frame; collected() returns true when it is complete.
  void collect(links::FrameHeader const& header);
  [[nodiscard]] std::span<std::byte> collecting_space();
  [[nodiscard]] bool collected(std::size_t bytes);
  [[nodiscard]] links::FrameHeader const& control_header() const { return control_header_; }
  [[nodiscard]] std::span<std::byte const> control_payload() const;

  // The runs that depend on it.
  [[nodiscard]] std::vector<std::uint64_t> const& dependents() const { return dependents_; }

  // The link has ended: all runs on it fail.
  virtual void lost(Error const& why) = 0;

  ConnectionOwner& owner_;
  PeerCounters& counters_;

 private:
  struct Queued {
    links::FrameHeader header;
    links::FailureNoticeBytes bytes;
  };
  static_assert(links::tell_bytes_max <= links::failure_notice_bytes_max);
  static_assert(links::borrow_bytes_max <= links::failure_notice_bytes_max);

  Queued& queue(links::FrameType type, std::uint64_t run, std::uint32_t epoch);

  [[nodiscard]] PeerCounters::End end_of(Error const& why) const;

  Identity const peer_;
  std::shared_ptr<links::Link> link_;
  bool lends_ = false;
  Place place_ = Place::alone;
  bool closing_ = false;
  bool closed_ = false;
  std::deque<Queued> notes_;  // the link has the first given_ of them
  std::size_t given_ = 0;
  std::uint64_t moved_ = 0;
  std::vector<std::uint64_t> dependents_;  // runs
  links::FrameHeader control_header_;
  std::array<std::byte, links::control_bytes_max> control_{};
  std::size_t control_filled_ = 0;
};

}  // namespace chorus::engine
