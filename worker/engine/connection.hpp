// What both ends of a link have in common: notes (verdicts, asks and tells) to write and to read, and a place in the
// engine's list of links that have something to write.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/failure.hpp"
#include "worker/engine/traffic.hpp"
#include "worker/links/inquiry.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class Engine;
class PeerCounters;

// Who is at the other end.
struct Identity {
  std::string worker;
  std::uint64_t incarnation = 0;
  friend bool operator==(Identity const&, Identity const&) = default;
};

// Lives on the data thread, owned by the engine; a closed connection stays until no call is under way.
class Connection : public links::LinkHandler {
 public:
  Connection(Engine& engine, Identity peer);
  virtual ~Connection() = default;
  Connection(Connection const&) = delete;
  Connection& operator=(Connection const&) = delete;

  [[nodiscard]] Identity const& peer() const { return peer_; }
  [[nodiscard]] bool is_closed() const { return closed_; }

  // The link exists now. May fail at once. `lends`: both ends agree that opens lend memory of GPUs. Of two links on one
  // connection the one beside the other is not counted.
  enum class Place : bool { alone, beside };
  void attach(std::shared_ptr<links::Link> link, bool lends, Place place = Place::alone);

  // Queue a note; it overtakes whatever else is to be written.
  void send_ask(std::uint64_t run, std::uint32_t epoch, links::Ask const& ask);
  void send_tell(std::uint64_t run, std::uint32_t epoch, links::Tell const& tell);
  void send_verdict(links::FrameType type, std::uint64_t run, std::uint32_t epoch, links::Verdict const& verdict);
  void send_borrow(std::uint64_t run, std::uint32_t epoch, links::Borrow const& borrow);
  void send_returned(std::uint64_t run, std::uint32_t epoch);
  void send_room(links::FrameHeader const& header, links::Place const& place);

  // The run has no channel on this link, and asks its peer all the same: if the link ends it is told.
  void depends(std::uint64_t run);
  // On a connection that exists for messages the other way; those of this one may come or go on another.
  [[nodiscard]] bool is_beside() const { return place_ == Place::beside; }
  // Grows with every frame that came or went.
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

  // Writes what there is to write. Ends the link if the peer does not read its notes.
  void flush();
  // Ends the link after an attempt to write the queued verdicts; its runs fail.
  void fail(Error why);

  void link_rests() final;
  void link_closed(Error why) final;

  bool is_queued = false;  // with the engine, to be flushed

 protected:
  [[nodiscard]] bool has_notes() const { return !notes_.empty(); }
  [[nodiscard]] bool next_note(links::OutFrame& frame);
  void note_sent();
  void frame_moved() { ++moved_; }
  // Of a run that is known here by its number: errors where the frame says another epoch.
  [[nodiscard]] Status check_epoch(links::FrameHeader const& header) const;
  // The ask or tell that was collected.
  [[nodiscard]] Status inquiry_arrived();
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] bool may_lend() const { return lends_; }
  void touch();
  [[nodiscard]] links::Link* link() { return link_.get(); }

  // The payload of a control frame is collected here; complete() says when it is there.
  void collect(links::FrameHeader const& header);
  [[nodiscard]] std::span<std::byte> collecting_space();
  [[nodiscard]] bool collected(std::size_t bytes);
  [[nodiscard]] links::FrameHeader const& control_header() const { return control_header_; }
  [[nodiscard]] std::span<std::byte const> control_payload() const;

  // The runs on this link are to fail.
  virtual void lost(Error const& why) = 0;

  Engine& engine_;
  PeerCounters& counters_;

 private:
  struct Queued {
    links::FrameHeader header;
    links::VerdictBytes bytes;
  };
  static_assert(links::tell_bytes_max <= links::verdict_bytes_max);
  static_assert(links::borrow_bytes_max <= links::verdict_bytes_max);

  Queued& queue(links::FrameType type, std::uint64_t run, std::uint32_t epoch);

  [[nodiscard]] PeerCounters::End end_of(Error const& why) const;

  Identity const peer_;
  std::shared_ptr<links::Link> link_;
  bool lends_ = false;
  Place place_ = Place::alone;
  bool closing_ = false;
  bool closed_ = false;
  std::deque<Queued> notes_;  // the first given_ are with the link
  std::size_t given_ = 0;
  std::uint64_t moved_ = 0;
  std::vector<std::uint64_t> dependents_;  // runs
  links::FrameHeader control_header_;
  std::array<std::byte, links::control_bytes_max> control_{};
  std::size_t control_filled_ = 0;
};

}  // namespace chorus::engine
