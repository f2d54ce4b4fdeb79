// The control blocks in shared memory of a group on one host: one board per member, in its own arena.
//
// The board of member r has a lane from every other member. A lane carries messages one way, in order: a ring of
// records that the sender fills. A record contains its payload if it is small, or the place of the payload in the
// sender's arena. docs/explanation/shared_memory.md describes the layout.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "worker/links/frames/frame.hpp"

namespace chorus::engine {

inline constexpr std::uint32_t board_layout = 4;
inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint32_t records_per_lane = 8;
inline constexpr std::uint32_t landings_per_lane = 8;
inline constexpr std::uint32_t bytes_in_record = 32;  // payload in the same cache line as the record's fields

enum class RecordKind : std::uint32_t {
  inside = 1,  // the payload is in the record, or in the record's block
  reference,   // the payload is in the sender's arena at `offset` until the record is consumed
  landed,      // the sender has put the payload into its destination
  pieces,      // like reference, in several pieces: their list begins at `offset`
};

// One piece of a payload in several. The list is in the same arena, and valid as long as the pieces.
struct PieceEntry {
  std::uint64_t offset;
  std::uint64_t bytes;  // not 0; may exceed the message in the last entry
};
static_assert(sizeof(PieceEntry) == 16 && std::has_unique_object_representations_v<PieceEntry>);

enum class LandingKind : std::uint32_t {
  one = 1,  // one piece
  pieces,   // several pieces: their list begins at `offset`
};

struct alignas(line_bytes) Record {
  std::atomic<std::uint64_t> sequence;  // n + 1 once the n-th record of the lane is complete; written last
  std::uint32_t call;                   // low half of the call's number
  std::uint32_t agreement;              // hash of what both ends must agree on
  RecordKind kind;
  std::uint32_t bytes;
  std::uint64_t offset;
  std::array<std::byte, bytes_in_record> payload;
};
static_assert(sizeof(Record) == 64 && offsetof(Record, call) == 8 && offsetof(Record, kind) == 16);
static_assert(offsetof(Record, offset) == 24 && offsetof(Record, payload) == 32);

// Destination of the lane's n-th message. The sender may write there once it has read the receiver's first `after`
// messages; of the last of them, each element is read before its place is written.
struct Landing {
  std::atomic<std::uint64_t> message;  // n + 1; written last
  std::uint64_t offset;                // in the receiver's arena
  std::uint32_t bytes;
  LandingKind kind;
  std::uint64_t after;
};
static_assert(sizeof(Landing) == 32 && offsetof(Landing, kind) == 20 && offsetof(Landing, after) == 24);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The fixed part of a lane; the blocks of its records follow.
struct alignas(line_bytes) Lane {
  std::atomic<std::uint64_t> consumed;  // number of records that the reader has consumed
  alignas(line_bytes) std::array<Landing, landings_per_lane> landings;
  alignas(line_bytes) std::array<Record, records_per_lane> records;
};
static_assert(sizeof(Lane) == 64 + 256 + 512);

// BoardHead::failed while no call has failed.
inline constexpr std::uint64_t no_failure = ~std::uint64_t{0};

// The head of a board; the lanes follow by the rank of their sender, including an unused one of the owner.
struct alignas(line_bytes) BoardHead {
  std::atomic<std::uint64_t> entered;  // number of calls that the member has begun
  std::atomic<std::uint64_t> ended;    // number of calls that the member has ended, even if others go on
  // Hash of the kind of the call that the member is in, or will begin next; 0: not known.
  std::atomic<std::uint64_t> fingerprint;
  // n + 1 if the member's n-th call failed: see failure_notice. 0: the board was given back, and all of it may read as
  // zeros. The first page of a board is given back before the others (memory::Arena::retire), so a member that finds
  // another value here after reading has not read such zeros.
  alignas(line_bytes) std::atomic<std::uint64_t> failed = no_failure;
  std::uint32_t failure_notice_bytes;
  links::FailureNoticeBytes failure_notice;
  // What the member calls, for error messages of the others: "all_reduce sum f32[4096] ring of 4".
  std::uint32_t description_bytes;
  std::array<char, links::description_bytes_max> description;
};
static_assert(offsetof(BoardHead, fingerprint) == 16 && offsetof(BoardHead, failed) == 64);
static_assert(std::is_trivially_destructible_v<BoardHead> && std::is_trivially_destructible_v<Lane>);

// Layout of the boards of a group; equal on all members.
struct BoardLayout {
  explicit BoardLayout(std::uint32_t members)
      : ranks(members), block_bytes(members <= 16 ? 2048 : 512), slot_bytes(slot_for(members)) {}

  std::uint32_t ranks;
  std::uint32_t block_bytes;  // the largest payload inside a record
  std::uint32_t slot_bytes;   // size of the two slots per lane for payloads outside the arena

  [[nodiscard]] std::uint64_t lane_bytes() const {
    return sizeof(Lane) + std::uint64_t{records_per_lane} * block_bytes;
  }
  [[nodiscard]] std::uint64_t lane_at(std::uint32_t sender) const { return sizeof(BoardHead) + sender * lane_bytes(); }
  // Slots for messages from this member to the receiver.
  [[nodiscard]] std::uint64_t slots_at(std::uint32_t receiver) const {
    return lane_at(ranks) + std::uint64_t{2} * receiver * slot_bytes;
  }
  [[nodiscard]] std::uint64_t board_bytes() const { return slots_at(ranks); }

 private:
  static std::uint32_t slot_for(std::uint32_t members) {
    return std::clamp<std::uint32_t>((2u << 20) / std::max(members, 2u) / 4096 * 4096, 16384, 262144);
  }
};

}  // namespace chorus::engine
