// Rings of frames in shared memory: their layout, and both ends of a ring. docs/reference/wire_memory.md has the rules
// and a worked example.
//
// Another process writes this memory and may change it at any time. So every number is read once, then checked, then
// used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/core/result.hpp"
#include "worker/links/frames/frame.hpp"

namespace chorus::links {

// A ring is an array of lines. A frame takes one line, and further lines for a payload in the ring.
struct alignas(64) RingLine {
  std::array<std::uint64_t, 8> words{};
};
static_assert(sizeof(RingLine) == 64);

enum class RecordKind : std::uint32_t {
  in_ring = 1,  // the payload follows the head
  reference,    // the payload is elsewhere in the region, at `reference`
  withdrawn,    // a reference that the sender has taken back: the memory has other contents by now
  filler,       // no frame: the next one is at the beginning of the ring
};

// The beginning of the first line of a frame. The word with the kind is written last, and makes the frame readable; the
// sender has set it to 0 in the line behind the frame before that.
struct RecordHead {
  FrameHeader frame;
  std::uint64_t reference = 0;  // from the beginning of the dialer's region
  RecordKind kind = RecordKind::in_ring;
  std::uint32_t zero = 0;
};
inline constexpr std::size_t record_head_bytes = 48;
static_assert(sizeof(RecordHead) == record_head_bytes && offsetof(RecordHead, reference) == 32);
static_assert(offsetof(RecordHead, kind) == 40 && std::has_unique_object_representations_v<RecordHead>);

// The largest payload in a ring.
inline constexpr std::size_t in_ring_bytes_max = 2048;
static_assert(in_ring_bytes_max >= control_bytes_max, "control frames need no other memory");
static_assert(in_ring_bytes_max >= sizeof(MessageHead) + message_content_max, "nor do small messages");

// The receiver's position in a ring, in lines since the link began: the lines below may be overwritten.
struct alignas(64) RingTail {
  std::atomic<std::uint64_t> line{0};
};
static_assert(sizeof(RingTail) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t forward_lines = 1024;
inline constexpr std::size_t back_lines = 256;
inline constexpr std::uint64_t shm_control_magic = 0x31676e6972726863;  // "chrring1"
inline constexpr std::uint64_t shm_control_layout = 2;

// Bits of dialer_sleeps and acceptor_sleeps: what an end waits for while it sleeps.
inline constexpr std::uint32_t sleeps_for_frames = 1;
inline constexpr std::uint32_t sleeps_for_room = 2;

// The memory that both ends of a link share, initially zeros.
struct ShmControl {
  std::uint64_t magic = 0;
  std::uint64_t layout = 0;
  alignas(64) std::atomic<std::uint32_t> dialer_sleeps{0};
  alignas(64) std::atomic<std::uint32_t> acceptor_sleeps{0};
  RingTail forward;  // of the ring from the dialer to the acceptor
  RingTail back;
  std::array<RingLine, forward_lines> forward_ring;
  std::array<RingLine, back_lines> back_ring;
};
static_assert(offsetof(ShmControl, layout) == 8 && offsetof(ShmControl, dialer_sleeps) == 64);
static_assert(offsetof(ShmControl, acceptor_sleeps) == 128 && offsetof(ShmControl, forward) == 192);
static_assert(offsetof(ShmControl, back) == 256 && offsetof(ShmControl, forward_ring) == 320);
static_assert(offsetof(ShmControl, back_ring) == 320 + 64 * forward_lines);
static_assert(sizeof(ShmControl) == 320 + 64 * (forward_lines + back_lines));

// The sending end. One thread. Nothing is allocated.
class RingSender {
 public:
  // Tail and ring outlive the sender, and are zeros at first. The number of lines is a power of two, at least 128.
  RingSender(RingTail& tail, std::span<RingLine> ring);

  // Puts a frame with at most in_ring_bytes_max of payload. False if there is no room.
  bool put(FrameHeader const& frame, std::span<std::byte const> payload);
  // The same for a message frame.
  bool put(FrameHeader const& frame, MessageHead const& head, std::span<std::byte const> content);
  // Puts a frame and returns its line; nothing if there is no room.
  std::optional<std::uint64_t> put_reference(FrameHeader const& frame, std::uint64_t reference);
  // Withdraws a reference that has not been received: the receiver will discard the payload, even if it is reading it.
  void withdraw(std::uint64_t place);

  // Returns the receiver's position. Errors: LinkErrc::bad_frame: the position is impossible.
  [[nodiscard]] Result<std::uint64_t> received();
  [[nodiscard]] std::uint64_t received_so_far() const { return tail_; }  // at the last received()

 private:
  // Finds room for a frame of so many lines, and returns its first line; nothing if there is no room.
  std::optional<std::uint64_t> reserve(std::size_t lines);
  [[nodiscard]] bool has_room(std::size_t lines) const { return lines < ring_.size() - (head_ - tail_); }
  // Writes the head of a frame whose payload has been written, and makes the frame readable.
  void publish(RecordHead const& head, std::size_t lines);
  void end_with(std::uint64_t place);  // nothing can be read from this line on
  [[nodiscard]] std::byte* body_of(std::uint64_t place) const;
  [[nodiscard]] std::size_t index_of(std::uint64_t place) const { return place & (ring_.size() - 1); }

  RingTail& shared_tail_;
  std::span<RingLine> const ring_;
  std::uint64_t head_ = 0;  // the next frame's line
  std::uint64_t tail_ = 0;  // at the last received()
  std::uint64_t end_ = 0;   // the last line that was set to 0
};

// The receiving end. One thread.
class RingReceiver {
 public:
  struct Record {
    RecordHead head;                       // a copy
    std::span<std::byte const> in_ring{};  // memory for a payload in the ring; the payload's length is not checked
  };

  // The arguments are those of RingSender.
  RingReceiver(RingTail& tail, std::span<RingLine> ring) : shared_tail_(tail), ring_(ring) {}

  [[nodiscard]] bool is_empty() const;
  // Reads the next frame; false if there is none. Errors: LinkErrc::bad_frame.
  [[nodiscard]] Result<bool> look(Record& record);
  // The same for a frame with its payload in the ring. False also for any other.
  [[nodiscard]] bool look_in_ring(FrameHeader& frame, std::span<std::byte const>& in_ring);
  // Returns true if the current frame, a reference, has not been withdrawn: the payload that was read is valid.
  [[nodiscard]] bool still_stands() const;
  // Moves past the current frame, of this kind and checked length. True: a sender that waits for room is told now,
  // which it need not be after each frame: until it has room, the ring is so full that this happens again.
  bool advance(RecordKind kind, std::uint32_t length);

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t place) const { return place & (ring_.size() - 1); }
  [[nodiscard]] RingLine& line() const { return ring_[index_of(tail_)]; }
  [[nodiscard]] std::span<std::byte const> body() const;
  void pass_filler();

  RingTail& shared_tail_;
  std::span<RingLine> const ring_;
  std::uint64_t tail_ = 0;
  std::uint64_t told_ = 0;  // the tail when advance() was last true
};

}  // namespace chorus::links
