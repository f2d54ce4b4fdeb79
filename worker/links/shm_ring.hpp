// Frames in shared memory: the layout that two processes see, and both ends of a ring of frames in it. The page
// docs/wire.md has the rules and a worked example.
//
// What is read here was written by another process, which may change it at any time: every number is read once, then
// checked, then used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/core/result.hpp"
#include "worker/links/frame.hpp"

namespace chorus::links {

// A ring is an array of lines. A frame takes one, and as many more as its payload needs if that lies in the ring.
struct alignas(64) RingLine {
  std::array<std::uint64_t, 8> words{};
};
static_assert(sizeof(RingLine) == 64);

enum class RecordKind : std::uint32_t {
  in_ring = 1,  // the payload follows the head
  reference,    // the payload is elsewhere in the region, at `reference`
  withdrawn,    // was a reference: the sender gave up, and its memory means something else by now
  filler,       // nothing; the next frame is at the beginning of the ring
};

// The beginning of the first line of a frame.
struct RecordHead {
  FrameHeader frame;
  std::uint64_t reference = 0;  // from the beginning of the dialer's region
  RecordKind kind = RecordKind::in_ring;
  std::uint32_t zero = 0;
};
inline constexpr std::size_t record_head_bytes = 48;
static_assert(sizeof(RecordHead) == record_head_bytes && offsetof(RecordHead, reference) == 32);
static_assert(offsetof(RecordHead, kind) == 40 && std::has_unique_object_representations_v<RecordHead>);

// The largest payload that a ring itself takes.
inline constexpr std::size_t in_ring_bytes_max = 2048;
static_assert(in_ring_bytes_max >= control_bytes_max, "control frames need no other memory");

// How far each end of a ring has come: lines since the beginning of the link.
struct RingMarks {
  alignas(64) std::atomic<std::uint64_t> head{0};  // written by the sender: the lines below may be read
  alignas(64) std::atomic<std::uint64_t> tail{0};  // written by the receiver: the lines below are not needed any more
};
static_assert(sizeof(RingMarks) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t forward_lines = 1024;
inline constexpr std::size_t back_lines = 256;
inline constexpr std::uint64_t shm_control_magic = 0x31676e6972726863;  // "chrring1"
inline constexpr std::uint64_t shm_control_layout = 1;

// What an end of the link waits for while it sleeps.
inline constexpr std::uint32_t sleeps_for_frames = 1;
inline constexpr std::uint32_t sleeps_for_room = 2;

// What the two ends of a link share. It begins as zeros.
struct ShmControl {
  std::uint64_t magic = 0;
  std::uint64_t layout = 0;
  alignas(64) std::atomic<std::uint32_t> dialer_sleeps{0};
  alignas(64) std::atomic<std::uint32_t> acceptor_sleeps{0};
  alignas(64) RingMarks forward;  // from the dialer to the acceptor
  RingMarks back;
  std::array<RingLine, forward_lines> forward_ring;
  std::array<RingLine, back_lines> back_ring;
};
static_assert(offsetof(ShmControl, layout) == 8 && offsetof(ShmControl, dialer_sleeps) == 64);
static_assert(offsetof(ShmControl, acceptor_sleeps) == 128 && offsetof(ShmControl, forward) == 192);
static_assert(offsetof(ShmControl, back) == 320 && offsetof(ShmControl, forward_ring) == 448);
static_assert(offsetof(ShmControl, back_ring) == 448 + 64 * forward_lines);
static_assert(sizeof(ShmControl) == 448 + 64 * (forward_lines + back_lines));

// The sending end. One thread. Nothing is allocated.
class RingSender {
 public:
  // Both outlive it. The number of lines is a power of two, at least 128.
  RingSender(RingMarks& marks, std::span<RingLine> ring);

  // At most in_ring_bytes_max of payload. False: no room.
  bool put(FrameHeader const& frame, std::span<std::byte const> payload);
  // Where in the ring the frame is; nothing: no room.
  std::optional<std::uint64_t> put_reference(FrameHeader const& frame, std::uint64_t reference);
  // A receiver that has not read the payload by now will not believe it. Until the frame is received.
  void withdraw(std::uint64_t place);

  // How far the receiver has come. Errors: LinkErrc::bad_frame: it says what cannot be.
  [[nodiscard]] Result<std::uint64_t> received();
  [[nodiscard]] std::uint64_t received_so_far() const { return tail_; }  // when that was asked last

 private:
  std::optional<std::uint64_t> reserve(std::size_t lines);
  void write(std::uint64_t place, RecordHead const& head);

  RingMarks& marks_;
  std::span<RingLine> const ring_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;  // as last seen
};

// The receiving end. One thread.
class RingReceiver {
 public:
  struct Record {
    RecordHead head;                       // a copy
    std::span<std::byte const> in_ring{};  // where a payload in the ring can be: check its length against this
  };

  // As above.
  RingReceiver(RingMarks& marks, std::span<RingLine> ring) : marks_(marks), ring_(ring) {}

  // The frame that is due; false: none has come. Errors: LinkErrc::bad_frame.
  [[nodiscard]] Result<bool> look(Record& record);
  // The frame at hand, which was a reference, has not been withdrawn: what was read of it is what was sent.
  [[nodiscard]] bool still_stands() const;
  // Done with the frame at hand, whose length fits.
  void advance(Record const& record);

 private:
  RingMarks& marks_;
  std::span<RingLine> const ring_;
  std::uint64_t tail_ = 0;
};

}  // namespace chorus::links
