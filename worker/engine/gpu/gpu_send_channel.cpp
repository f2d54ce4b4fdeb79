#include "worker/engine/gpu/gpu_send_channel.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/outlet.hpp"

namespace chorus::engine {

GpuSendChannel::GpuSendChannel(RunState& state, DeviceWork& device, ChannelStaging const& staging, plan::Rank peer,
                               std::vector<std::uint32_t> instructions, links::Open const& open,
                               std::string_view description)
    : SendChannel(state, peer, instructions, open, description, staging.send_blocks),
      device_(device),
      staging_(staging),
      block_bytes_(device.staging().block_bytes),
      blocks_(staging.send_blocks),
      waiting_(instructions.size()),
      free_(staging.send_blocks),
      on_wire_(staging.send_blocks) {
  for (std::uint32_t block = 0; block < staging.send_blocks; ++block) free_.push(block);
}

void GpuSendChannel::wake(std::uint32_t m) {
  auto& message = messages_[m];
  if (!message.queued && sendable(message) != 0) {
    message.queued = true;
    waiting_.push(m);
  }
  fill_blocks();
}

void GpuSendChannel::fill_blocks() {
  while (!waiting_.empty() && !free_.empty()) {
    auto const m = waiting_.front();
    auto& message = messages_[m];
    auto const bytes = std::min(sendable(message), block_bytes_);
    if (bytes == 0) {
      waiting_.pop();
      message.queued = false;
      continue;
    }
    auto const block = free_.front();
    free_.pop();
    blocks_[block] = {m, bytes, 0, 0};
    message.taken += bytes;
    device_.send(message.instruction, staging_.send_at + block * block_bytes_, {m, bytes, block, true}, *this);
  }
}

void GpuSendChannel::device_did(DevicePiece const& piece) {
  queue_.push(piece.block);
  if (outlet != nullptr && has_frame()) outlet->schedule(*this);
}

bool GpuSendChannel::next_data(links::OutFrame& frame) {
  if (queue_.empty()) return false;
  auto const index = queue_.front();
  auto& block = blocks_[index];
  auto& message = messages_[block.message];
  if (block.issued == 0) on_wire_.push(index);
  auto const bytes = std::min(block.bytes - block.issued, state_.segment_bytes);
  frame.payload = device_.pinned(staging_.send_at + index * block_bytes_ + block.issued, bytes);
  frame.header.message = block.message;
  frame.header.length = static_cast<std::uint32_t>(bytes);
  frame.header.offset = message.issued;
  message.issued += bytes;
  block.issued += bytes;
  if (block.issued == block.bytes) queue_.pop();
  return true;
}

// Frames are sent in the order in which they were given.
void GpuSendChannel::payload_sent(links::FrameHeader const& header) {
  auto const index = on_wire_.front();
  auto& block = blocks_[index];
  block.sent += header.length;
  if (block.sent != block.bytes) return;
  on_wire_.pop();
  free_.push(index);
  fill_blocks();
}

}  // namespace chorus::engine
