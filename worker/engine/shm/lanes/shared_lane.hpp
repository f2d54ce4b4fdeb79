// The two lanes between this member and one peer, as this member uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "collectives/core/assert.hpp"
#include "collectives/plan/spec.hpp"
#include "worker/engine/failure/failure.hpp"
#include "worker/engine/shm/lanes/peer_pieces.hpp"
#include "worker/engine/shm/lanes/shared_board.hpp"
#include "worker/memory/regions/shared_region.hpp"

namespace chorus::engine {

// One thread at a time. Everything that the peer wrote is checked before use; a correct peer never fails a check.
class SharedLane {
 public:
  // `own`: the board in this member's arena, whose region is `own_memory`; it outlives the lane. `board`: the peer's
  // board, in `region`.
  SharedLane(BoardLayout const& layout, plan::Rank self, plan::Rank peer, std::span<std::byte> own,
             memory::Mapping const& own_memory, std::shared_ptr<memory::PeerRegion const> region,
             std::span<std::byte> board);

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] memory::PeerRegion const& region() const { return *region_; }
  [[nodiscard]] BoardHead const& board() const { return board_; }

  // Begins a call: records carry these values from now on.
  void begin(std::uint64_t call, std::uint32_t sends_agreement, std::uint32_t receives_agreement);

  // Sending. Returns how many bytes were taken, 0 if the peer must consume records first.
  std::uint64_t send_inside(std::span<std::byte const> bytes);
  std::uint64_t send_reference(std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t send_through_slot(std::span<std::byte const> bytes);
  // `list`: arena offset of the first entry. At most message_bytes_max bytes.
  [[nodiscard]] bool send_pieces(std::uint64_t list, std::uint64_t bytes);
  [[nodiscard]] bool send_landed(std::uint64_t bytes);
  [[nodiscard]] std::uint32_t inside_max() const { return block_bytes_; }

  // Messages completely sent and received since the group began.
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;

  // Number of records that the peer must consume before the memory that sent records refer to may change.
  [[nodiscard]] std::uint64_t referred() const { return referred_; }
  // True if the peer has consumed that many records.
  [[nodiscard]] bool has_consumed(std::uint64_t records);

  // Where the peer wants message number `message` from here; empty if it has not said so, or still waits for messages
  // to be read.
  [[nodiscard]] PeerPieces landing(std::uint64_t message, std::uint64_t bytes, std::uint64_t messages_read) const;
  // Tells the peer where its n-th message may be written. At most message_bytes_max bytes.
  void offer_landing(std::uint64_t message, LandingKind kind, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t after);
  static constexpr std::uint64_t message_bytes_max = 1u << 30;  // in one record

  // Receiving: the rest of the current record; 0 bytes if none has arrived.
  struct Arrived {
    std::byte const* data = nullptr;  // null: the payload has landed
    std::uint64_t bytes = 0;
    bool wrong = false;  // the record is invalid; see why()
  };
  [[nodiscard]] Arrived arrived(std::uint64_t bytes_wanted);
  [[nodiscard]] Arrived const& at_hand() const { return at_hand_; }  // the last result of arrived() that was not wrong
  // True if there is a current record, or the next one has arrived.
  [[nodiscard]] bool has_arrived() const {
    auto const& record = in_.records[received_ % records_per_lane];
    return has_record_ || record.sequence.load(std::memory_order_acquire) == received_ + 1;
  }
  void take(std::uint64_t bytes);
  // Describes what is wrong with the current record.
  [[nodiscard]] Failure why(std::uint64_t bytes_wanted) const;

  // Wakes the peer if it sleeps. Call after writing something that it may wait for.
  void ring();

 private:
  void wake_peer();
  [[nodiscard]] Record* next_record();
  void publish(Record& record, RecordKind kind, std::uint64_t bytes, std::uint64_t offset);
  // Moves to the next piece of the current record; false if there is none.
  [[nodiscard]] bool find_next_piece();
  [[nodiscard]] std::byte* block_of(Lane& lane, std::uint64_t record) const;

  plan::Rank const peer_;
  std::uint32_t const block_bytes_, slot_bytes_;
  std::shared_ptr<memory::PeerRegion const> const region_;
  BoardHead const& board_;
  Lane& out_;
  Lane& in_;
  std::byte* const slots_;
  std::uint64_t const slots_offset_;
  memory::RegionHead& peer_head_;
  bool const rings_without_fence_;  // both sides use membarrier fences (worker/memory/pages/membarrier_fence.hpp)

  std::uint32_t call_ = 0, sends_agreement_ = 0, receives_agreement_ = 0;
  std::uint64_t sent_ = 0;  // records sent
  std::uint64_t seen_ = 0;  // of them consumed, as last read
  std::uint64_t referred_ = 0;
  std::uint64_t slot_free_at_[2] = {0, 0};  // records to be consumed before the slot is reused
  std::uint32_t next_slot_ = 0;

  std::uint64_t received_ = 0;  // records received
  bool has_record_ = false;     // the current record was checked
  Arrived at_hand_;
  PeerPieces pieces_;  // of the current record, if its payload is in several
};

// Inline because a small call takes a few hundred nanoseconds and runs mostly this code.

inline void SharedLane::begin(std::uint64_t call, std::uint32_t sends_agreement, std::uint32_t receives_agreement) {
  call_ = static_cast<std::uint32_t>(call);
  sends_agreement_ = sends_agreement;
  receives_agreement_ = receives_agreement;
}

inline std::byte* SharedLane::block_of(Lane& lane, std::uint64_t record) const {
  return reinterpret_cast<std::byte*>(&lane) + sizeof(Lane) + record % records_per_lane * block_bytes_;
}

inline bool SharedLane::has_consumed(std::uint64_t records) {
  if (seen_ < records) seen_ = out_.consumed.load(std::memory_order_acquire);
  return seen_ >= records;
}

inline Record* SharedLane::next_record() {
  if (sent_ >= records_per_lane && !has_consumed(sent_ - records_per_lane + 1)) return nullptr;
  return &out_.records[sent_ % records_per_lane];
}

inline void SharedLane::publish(Record& record, RecordKind kind, std::uint64_t bytes, std::uint64_t offset) {
  record.call = call_;
  record.agreement = sends_agreement_;
  record.kind = kind;
  record.bytes = static_cast<std::uint32_t>(bytes);
  record.offset = offset;
  record.sequence.store(++sent_, std::memory_order_release);
  ring();
}

inline std::uint64_t SharedLane::send_inside(std::span<std::byte const> bytes) {
  auto* const record = next_record();
  if (record == nullptr) return 0;
  std::memcpy(bytes.size() <= bytes_in_record ? record->payload.data() : block_of(out_, sent_), bytes.data(),
              bytes.size());
  publish(*record, RecordKind::inside, bytes.size(), 0);
  return bytes.size();
}

inline void SharedLane::take(std::uint64_t bytes) {
  CHORUS_ASSERT(has_record_ && bytes <= at_hand_.bytes, "what is taken has arrived");
  at_hand_.bytes -= bytes;
  if (at_hand_.data != nullptr) at_hand_.data += bytes;
  if (at_hand_.bytes != 0 || (pieces_.is_there() && find_next_piece())) return;
  has_record_ = false;
  in_.consumed.store(++received_, std::memory_order_release);
  ring();
}

// A fence separates the write from the read of `sleepers`; it may be executed by the sleeper on behalf of this thread.
// The sleeper has a fence between registering itself and its last look.
inline void SharedLane::ring() {
  if (rings_without_fence_)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
  if (peer_head_.sleepers.load(std::memory_order_relaxed) != 0) wake_peer();
}

}  // namespace chorus::engine
