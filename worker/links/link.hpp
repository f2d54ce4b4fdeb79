// A link: an ordered, reliable path for frames between two workers, and what its user provides to it.
//
// Everything happens on one thread. A link pulls what it writes and is told where to put what it reads, so no frame is
// queued, copied or allocated on the way: the payload of a data frame goes from the sender's tensor to the receiver's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/core/result.hpp"
#include "worker/links/frame.hpp"

namespace chorus::links {

// The payload lies outside and stays as it is until frame_sent(), or until Link::release() of its run.
struct OutFrame {
  FrameHeader header;
  std::span<std::byte const> payload;  // header.length bytes
};

// An open and the data frame after it: small, and there as a whole. Whoever receives one looks at both headers: they
// may be of different runs.
struct Parcel {
  FrameHeader open;
  std::span<std::byte const> opening;  // open.length bytes
  FrameHeader data;
  std::span<std::byte const> payload;  // data.length bytes
};
// Of a parcel's payload, and of both frames.
inline constexpr std::size_t parcel_bytes_max = 8192;
inline constexpr std::size_t parcel_size_max = 2 * sizeof(FrameHead) + open_bytes_max + parcel_bytes_max;

// How much of a parcel the link has taken.
enum class Taken : std::uint8_t {
  nothing,
  // The rest goes as frames of next_frame() do: frame_sent() follows for those that are not handed over whole.
  in_part,
  whole,  // no frame_sent() follows, and what both frames lie in may change
};

// The user of a link. Every method is called by the link, none of them after Link::close() or link_closed().
// None may destroy the link; all may call flush(), release() and close().
class LinkHandler {
 public:
  // Fills in the next frame to write; false when there is none now. Frames are written in this order.
  virtual bool next_frame(OutFrame& frame) = 0;
  // The frame was handed over whole: its payload may change.
  virtual void frame_sent(FrameHeader const& header) = 0;

  // Any 32 bytes. After ok, header.length bytes of payload follow through payload_space(). An error closes the link,
  // after an attempt to write what next_frame() gives: the last word to the other side.
  virtual Status frame_arrives(FrameHeader const& header) = 0;
  // On a link with checksums, before link_closed(): a frame was changed on the way, and nothing after it can be read.
  // An attempt to write what next_frame() gives follows.
  virtual void frame_is_corrupt(Error const& why) = 0;
  // Where the next bytes of the payload go: not empty, valid until payload_arrived().
  virtual std::span<std::byte> payload_space() = 0;
  // `bytes` were put at the beginning of that space; never more than it had or the payload has. Errors as above.
  virtual Status payload_arrived(std::size_t bytes) = 0;

  // Instead of all that for two frames that came together, if a parcel that begins so is awaited: true if they were
  // used, which is done when the call returns. False: they arrive one after the other.
  [[nodiscard]] virtual bool awaits_parcel(FrameHeader const& /*open*/) const { return false; }
  virtual bool parcel_arrives(Parcel const&) { return false; }

  // Instead of payload_space(), where the whole payload lies in memory already: it is to be used before the call
  // returns. The memory is the sender's: it may change meanwhile. What was read counts only once payload_arrived() has
  // been called for all of it, which happens next; or payload_withdrawn(), and then it never does.
  virtual void payload_at(std::span<std::byte const> payload) = 0;
  // The sender has given up the run whose payload was read: what was read may be anything. An abort follows.
  virtual void payload_withdrawn() = 0;

  // The link has handled what was there for now: a good moment to act on it.
  virtual void link_rests() = 0;
  // Called once. Errors: LinkErrc, or the one that a method above returned.
  virtual void link_closed(Error why) = 0;

 protected:
  ~LinkHandler() = default;
};

class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(Link const&) = delete;
  Link& operator=(Link const&) = delete;

  // Begins to read. The handler outlives the link's closing.
  virtual void start(LinkHandler& handler) = 0;

  // The handler has frames: pulls and writes until there are none or the other side is slow; goes on by itself then.
  virtual void flush() = 0;

  // Both frames at once, before what the handler has. Nothing is taken where the other side is slow, or by a link that
  // sends none.
  [[nodiscard]] virtual Taken send_parcel(Parcel const&) { return Taken::nothing; }

  // The memory of this run's frames (is_of_channel) is about to go: those not begun are dropped, the rest of one that
  // is half written is copied, since the stream cannot go back. frame_sent() is called for none of them.
  virtual void release(std::uint64_t run) = 0;

  // Makes one attempt to write what next_frame() gives, then ends both directions. The handler is called no more.
  virtual void close() = 0;
  // The same; whoever uses another link on the same connection is told this reason.
  virtual void close_for(Error const&) { close(); }

  [[nodiscard]] virtual std::string_view kind() const = 0;  // "tcp", "tls", "shm", "loopback"
};

}  // namespace chorus::links
