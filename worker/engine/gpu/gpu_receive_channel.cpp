#include "worker/engine/gpu/gpu_receive_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/inlet.hpp"

namespace chorus::engine {

GpuReceiveChannel::GpuReceiveChannel(RunState& state, DeviceWork& device, ChannelStaging const& staging,
                                     plan::Rank peer, std::vector<std::uint32_t> instructions, std::uint64_t digest)
    : ReceiveChannel(state, peer, std::move(instructions), digest),
      device_(device),
      staging_(staging),
      block_bytes_(device.staging().block_bytes),
      ways_(messages_.size()) {
  for (auto block = staging.receive_blocks; block-- != 0;) free_blocks_.push_back(block);
  for (std::uint32_t m = 0; m < messages_.size(); ++m) dry_messages_ += is_dry(m);
  CHORUS_ASSERT(dry_messages_ <= staging.receive_blocks, "every message can have a block");
}

std::uint64_t GpuReceiveChannel::address(std::uint32_t block) const {
  return staging_.receive_at + block * block_bytes_;
}

bool GpuReceiveChannel::is_dry(std::uint32_t m) const {
  return !messages_[m].eager && ways_[m].held_blocks == 0 &&
         ways_[m].granted_blocks * block_bytes_ < state_.board.total(messages_[m].instruction);
}

// One block is kept for every message that has none: which of them the peer can send next is not known here.
bool GpuReceiveChannel::may_hold_one_more(std::uint32_t m) const {
  auto const kept = dry_messages_ - (is_dry(m) ? 1 : 0);
  return held_blocks_ + kept < staging_.receive_blocks;
}

void GpuReceiveChannel::extend(std::uint32_t m) {
  auto& way = ways_[m];
  auto const ready = state_.board.ready(messages_[m].instruction);
  while (way.granted_blocks * block_bytes_ < ready && may_hold_one_more(m)) {
    dry_messages_ -= is_dry(m);
    ++way.granted_blocks;
    ++way.held_blocks;
    ++held_blocks_;
  }
  grant(m, std::min(ready, way.granted_blocks * block_bytes_));
}

void GpuReceiveChannel::wake(std::uint32_t m) {
  if (messages_[m].eager) return queue_early(m);
  extend(m);
}

std::span<std::byte> GpuReceiveChannel::space() {
  auto const& message = messages_[message_];
  auto const at = message.arrived + (frame_bytes_ - frame_left_);
  if (message.eager) return device_.pinned(staging_.eager_at + message.stage_at + at, frame_left_);
  auto& way = ways_[message_];
  if (way.block == none) {
    way.block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  auto const in_block = at % block_bytes_;
  return device_.pinned(address(way.block) + in_block, std::min<std::uint64_t>(block_bytes_ - in_block, frame_left_));
}

void GpuReceiveChannel::put(std::size_t bytes) {
  auto const& message = messages_[message_];
  frame_left_ -= bytes;
  if (message.eager) return;
  auto const at = message.arrived + (frame_bytes_ - frame_left_);
  bool const ends_block = at % block_bytes_ == 0 || at == state_.board.total(message.instruction);
  if (ends_block || frame_left_ == 0) queue_until(message_, at, ends_block);
}

void GpuReceiveChannel::queue_until(std::uint32_t m, std::uint64_t end, bool frees_block) {
  auto& way = ways_[m];
  auto const begin = std::exchange(way.queued, end);
  DevicePiece const piece{m, end - begin, way.block, frees_block};
  device_.receive(messages_[m].instruction, address(way.block) + begin % block_bytes_, piece, *this);
  if (frees_block) way.block = none;
}

void GpuReceiveChannel::queue_early(std::uint32_t m) {
  auto const& message = messages_[m];
  auto& way = ways_[m];
  auto const until = std::min(state_.board.ready(message.instruction), message.arrived);
  if (until <= way.queued) return;
  auto const begin = std::exchange(way.queued, until);
  device_.receive(message.instruction, staging_.eager_at + message.stage_at + begin, {m, until - begin, 0, false},
                  *this);
}

void GpuReceiveChannel::arrived_here() {
  arrived();
  if (messages_[message_].eager) queue_early(message_);
}

void GpuReceiveChannel::filled(std::size_t bytes) {
  put(bytes);
  if (frame_left_ == 0) arrived_here();
}

void GpuReceiveChannel::take(std::span<std::byte const> payload) {
  while (!payload.empty()) {
    auto const to = space();
    auto const bytes = std::min(to.size(), payload.size());
    std::memcpy(to.data(), payload.data(), bytes);
    put(bytes);
    payload = payload.subspan(bytes);
  }
}

void GpuReceiveChannel::took() { arrived_here(); }

// What was withdrawn is on the device already, and may be anything: nobody may go on from there.
void GpuReceiveChannel::device_did(DevicePiece const& piece) {
  if (is_withdrawn()) return;
  state_.board.advance(messages_[piece.number].instruction, piece.bytes);
  if (!piece.frees_block) return;
  free_blocks_.push_back(piece.block);
  --ways_[piece.number].held_blocks;
  --held_blocks_;
  dry_messages_ += is_dry(piece.number);
  for (std::uint32_t m = 0; m < messages_.size(); ++m)
    if (!messages_[m].eager) extend(m);
  if (inlet != nullptr && has_grant()) inlet->schedule(*this);
}

}  // namespace chorus::engine
