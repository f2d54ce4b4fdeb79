// The interfaces Link, an ordered, reliable path for frames between two workers, and LinkHandler, its user.
//
// Everything happens on one thread. A link pulls the frames that it writes, and asks for the memory into which it
// reads. So no frame is queued, copied or allocated: payloads go from the sender's tensor to the receiver's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/core/result.hpp"
#include "worker/links/frames/frame.hpp"

namespace chorus::links {

// A frame to write. The payload stays unchanged until frame_sent(), or until Link::release() of its run.
struct OutFrame {
  FrameHeader header;
  std::span<std::byte const> payload;  // header.length bytes
};

// An open and the data frame after it, both small and complete. The receiver checks both headers, because the two may
// belong to different runs.
struct CoalescedFrame {
  FrameHeader open;
  std::span<std::byte const> opening;  // open.length bytes
  FrameHeader data;
  std::span<std::byte const> payload;  // data.length bytes
};
// Limits of a coalesced frame's payload, and of both its frames.
inline constexpr std::size_t coalesced_frame_bytes_max = 8192;
inline constexpr std::size_t coalesced_frame_size_max =
    2 * sizeof(FrameHead) + open_bytes_max + coalesced_frame_bytes_max;

// A small message. The header's length is that of head and content.
struct MessageFrame {
  FrameHeader header;
  MessageHead head;
  std::span<std::byte const> content;  // at most message_content_max bytes
};
inline constexpr std::size_t message_frame_size_max = sizeof(FrameHead) + sizeof(MessageHead) + message_content_max;

// How much of a coalesced frame the link has written.
enum class Taken : std::uint8_t {
  nothing,
  // The rest is written like frames of next_frame(): frame_sent() follows for each frame that was not complete.
  in_part,
  whole,  // no frame_sent() follows, and the memory of both frames may change
};

// The user of a link. The link calls every method, and none after Link::close() or link_closed(). No method may destroy
// the link; all may call flush(), release() and close().
class LinkHandler {
 public:
  // Fills in the next frame to write; false when there is none now. Frames are written in this order.
  virtual bool next_frame(OutFrame& frame) = 0;
  // The link has written the whole frame: its payload may change.
  virtual void frame_sent(FrameHeader const& header) = 0;

  // A header has arrived; its 32 bytes are not checked. After ok, header.length bytes of payload follow through
  // payload_space(). An error closes the link, after an attempt to write the frames of next_frame(), which may tell the
  // peer why.
  virtual Status frame_arrives(FrameHeader const& header) = 0;
  // A checksum does not match, so that nothing after this frame can be read. Called before link_closed(). An attempt to
  // write the frames of next_frame() follows.
  virtual void frame_is_corrupt(Error const& why) = 0;
  // Returns the memory for the next bytes of the payload: not empty, valid until payload_arrived().
  virtual std::span<std::byte> payload_space() = 0;
  // `bytes` bytes were put at the beginning of that memory, at most its size and the rest of the payload. Errors as
  // above.
  virtual Status payload_arrived(std::size_t bytes) = 0;

  // awaits_coalesced_frame() tells if the handler takes both frames of a coalesced frame with this open at once.
  // coalesced_frame_arrives() then replaces the calls above: true if the frames were used, which is done when it
  // returns. False: they arrive one after the other.
  [[nodiscard]] virtual bool awaits_coalesced_frame(FrameHeader const& /*open*/) const { return false; }
  virtual bool coalesced_frame_arrives(CoalescedFrame const&) { return false; }

  // Called instead of payload_space() if the whole payload lies in shared memory. The handler reads it before the call
  // returns. The sender may change this memory meanwhile. Next the link calls payload_arrived() for all of it, and the
  // bytes read are valid, or payload_withdrawn(), and they are not.
  virtual void payload_at(std::span<std::byte const> payload) = 0;
  // The sender has released the run of the payload: the bytes read are invalid. An abort follows.
  virtual void payload_withdrawn() = 0;

  // The link has handled everything that had arrived: a good moment to act on it.
  virtual void link_rests() = 0;
  // The link has ended. Called once. Errors: LinkErrc, or the error that a method above returned.
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

  // Begins to read. The handler must live until the link is closed.
  virtual void start(LinkHandler& handler) = 0;

  // Writes the handler's frames until there are none, or until the peer is slow: then it goes on later by itself.
  virtual void flush() = 0;

  // Writes both frames at once, before the handler's frames. Taken::nothing if the peer is slow, or if the link does
  // not send coalesced frames.
  [[nodiscard]] virtual Taken send_coalesced_frame(CoalescedFrame const&) { return Taken::nothing; }

  // Writes the message at once, or copies what the peer does not take yet; no frame_sent() follows. False, and nothing
  // is written, if frames wait in front of it, or if the link does not send such frames.
  [[nodiscard]] virtual bool send_message(MessageFrame const&) { return false; }

  // Polls so many times for the next frame, which is not there, a message, or something that this does not show:
  // another frame, an error, or any frame of a link that shows none. A message's content lies in shared memory, where
  // the peer may change it. The link goes on to handle the frame in the ordinary way, unless pass_message() follows.
  enum class Next : std::uint8_t { nothing, message, other };
  [[nodiscard]] virtual Next look_at_message(MessageFrame&, unsigned /*polls*/) { return Next::other; }
  // Moves past the message, whose content was read. False, and the message stays, if the bytes read are invalid.
  [[nodiscard]] virtual bool pass_message(MessageFrame const&) { return false; }

  // Stops using the memory of this run's frames (is_of_channel): frames that are not begun are dropped, and the rest of
  // a partly written one is copied. frame_sent() is called for none of them.
  virtual void release(std::uint64_t run) = 0;

  // Makes one attempt to write the frames of next_frame(), then ends both directions. The handler is not called again.
  virtual void close() = 0;
  // The same; the user of the other link on the same connection (two_way.hpp) gets this reason.
  virtual void close_for(Error const&) { close(); }

  [[nodiscard]] virtual std::string_view kind() const = 0;  // "tcp", "tls", "shm", "loopback"
};

}  // namespace chorus::links
