#include "worker/engine/shm/lanes/shared_lane.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "collectives/core/assert.hpp"

namespace chorus::engine {

SharedLane::SharedLane(BoardLayout const& layout, plan::Rank self, plan::Rank peer, std::span<std::byte> own,
                       memory::Mapping const& own_memory, std::shared_ptr<memory::PeerRegion const> region,
                       std::span<std::byte> board)
    : peer_(peer),
      block_bytes_(layout.block_bytes),
      slot_bytes_(layout.slot_bytes),
      region_(std::move(region)),
      board_(*reinterpret_cast<BoardHead const*>(board.data())),
      out_(*reinterpret_cast<Lane*>(board.data() + layout.lane_at(self))),
      in_(*reinterpret_cast<Lane*>(own.data() + layout.lane_at(peer))),
      slots_(own.data() + layout.slots_at(peer)),
      slots_offset_(static_cast<std::uint64_t>(slots_ - own_memory.bytes().data())),
      peer_head_(region_->mapping().head()),
      rings_without_fence_(own_memory.head().membarrier_fences == 1 && peer_head_.membarrier_fences == 1) {
  CHORUS_ASSERT(own.size() == layout.board_bytes() && board.size() == layout.board_bytes(), "boards are whole");
}

std::uint64_t SharedLane::send_reference(std::uint64_t offset, std::uint64_t bytes) {
  auto* const record = next_record();
  if (record == nullptr) return 0;
  auto const part = std::min(bytes, message_bytes_max);
  publish(*record, RecordKind::reference, part, offset);
  referred_ = sent_;
  return part;
}

std::uint64_t SharedLane::send_through_slot(std::span<std::byte const> bytes) {
  auto* const record = next_record();
  auto const slot = next_slot_;
  if (record == nullptr || !has_consumed(slot_free_at_[slot])) return 0;
  auto const part = std::min<std::uint64_t>(bytes.size(), slot_bytes_);
  std::memcpy(slots_ + slot * slot_bytes_, bytes.data(), part);
  publish(*record, RecordKind::reference, part, slots_offset_ + slot * slot_bytes_);
  slot_free_at_[slot] = sent_;
  next_slot_ = 1 - slot;
  return part;
}

bool SharedLane::send_landed(std::uint64_t bytes) {
  auto* const record = next_record();
  if (record == nullptr) return false;
  publish(*record, RecordKind::landed, bytes, 0);
  return true;
}

bool SharedLane::send_pieces(std::uint64_t list, std::uint64_t bytes) {
  auto* const record = next_record();
  if (record == nullptr) return false;
  publish(*record, RecordKind::pieces, bytes, list);
  referred_ = sent_;
  return true;
}

PeerPieces SharedLane::landing(std::uint64_t message, std::uint64_t bytes, std::uint64_t messages_read) const {
  auto const& landing = out_.landings[message % landings_per_lane];
  if (landing.message.load(std::memory_order_acquire) != message + 1) return {};
  auto const offset = landing.offset;
  if (landing.bytes != bytes || landing.after > messages_read) return {};
  auto const& memory = region_->mapping();
  auto const in_pieces = landing.kind == LandingKind::pieces;
  auto const place = in_pieces ? PeerPieces::listed(memory, offset, bytes) : PeerPieces::one(memory, offset, bytes);
  return place.is_wrong() ? PeerPieces() : place;
}

void SharedLane::offer_landing(std::uint64_t message, LandingKind kind, std::uint64_t offset, std::uint64_t bytes,
                               std::uint64_t after) {
  auto& landing = in_.landings[message % landings_per_lane];
  landing.offset = offset;
  landing.bytes = static_cast<std::uint32_t>(bytes);
  landing.kind = kind;
  landing.after = after;
  landing.message.store(message + 1, std::memory_order_release);
}

bool SharedLane::find_next_piece() {
  pieces_.advance(pieces_.here());
  if (!pieces_.is_there()) return false;
  at_hand_ = {pieces_.data(), pieces_.here(), pieces_.is_wrong()};
  return true;
}

SharedLane::Arrived SharedLane::arrived(std::uint64_t bytes_wanted) {
  if (has_record_) return at_hand_;
  if (!has_arrived()) return {};
  auto& record = in_.records[received_ % records_per_lane];
  // Read once, so that the checked values are the used ones.
  auto const kind = record.kind;
  std::uint64_t const bytes = record.bytes;
  auto const offset = record.offset;
  Arrived result;
  result.wrong = record.call != call_ || record.agreement != receives_agreement_ || bytes == 0 || bytes > bytes_wanted;
  if (!result.wrong) switch (kind) {
      case RecordKind::inside:
        result.wrong = bytes > block_bytes_;
        result.data = bytes <= bytes_in_record ? record.payload.data() : block_of(in_, received_);
        break;
      case RecordKind::reference:
        result.data = region_->mapping().at(offset, bytes).data();
        result.wrong = result.data == nullptr;
        break;
      case RecordKind::landed:
        result.wrong = bytes != bytes_wanted;
        break;
      case RecordKind::pieces:
        pieces_ = PeerPieces::listed(region_->mapping(), offset, bytes);
        result.data = pieces_.data();
        result.wrong = pieces_.is_wrong();
        break;
      default:
        result.wrong = true;
    }
  result.bytes = kind == RecordKind::pieces ? pieces_.here() : bytes;
  if (result.wrong) return result;
  has_record_ = true;
  at_hand_ = result;
  return result;
}

Failure SharedLane::why(std::uint64_t bytes_wanted) const {
  auto const& record = in_.records[received_ % records_per_lane];
  // A record of another call: the members' calls are not the same ones.
  if (record.call != call_ || record.agreement != receives_agreement_)
    return {EngineErrc::plan_mismatch, "it calls something else", {peer_}, {}};
  auto const text = "a record of kind " + std::to_string(static_cast<std::uint32_t>(record.kind)) + ", " +
                    std::to_string(record.bytes) + " bytes at " + std::to_string(record.offset) + ", where call " +
                    std::to_string(call_) + " has at most " + std::to_string(bytes_wanted) + " to come";
  return {EngineErrc::protocol_error, text, {peer_}, {}};
}

void SharedLane::wake_peer() {
  peer_head_.bell.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, &peer_head_.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace chorus::engine
