// Plans the pinned memory of a run on a GPU: how much, and which part belongs to which channel.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/program/channel_messages.hpp"

namespace chorus::engine {

// Bytes between the wire and the GPU pass through blocks of pinned memory. Every block belongs to one channel and one
// direction, and is reserved before any byte moves: no channel waits for a block that another one may keep.
//
// Received messages can always get one block each: whichever of them the peer is able to send gets through. A few more
// blocks let the wire, the copies and the kernels overlap. Eager messages have a place each for the whole run. Sent
// messages share a few blocks: they are copied only when the peer has granted them.
struct ChannelStaging {
  static constexpr std::uint32_t send_blocks_max = 4;  // one being copied out, others on the wire

  std::uint64_t receive_at = 0;  // offset of the first block; likewise below
  std::uint32_t receive_blocks = 0;
  std::uint64_t eager_at = 0;
  std::uint64_t send_at = 0;
  std::uint32_t send_blocks = 0;
};

// Offsets count through the area in parts of a slot or a block, whichever is larger: no block crosses a part boundary.
struct Staging {
  std::uint64_t block_bytes = 0;
  std::uint64_t received_bytes = 0;  // of blocks and places for received messages, which come first
  std::uint64_t bytes = 0;
  std::vector<ChannelStaging> channels;  // in the order of program.channels
};

// Plans blocks of the best size, or smaller ones if the total would exceed `bytes_max`. If even the smallest exceed it,
// they are planned all the same.
[[nodiscard]] Staging plan_staging(plan::Program const& program, std::vector<ChannelMessages> const& messages,
                                   std::vector<std::uint64_t> const& instruction_bytes, std::uint64_t eager_bytes,
                                   std::uint64_t bytes_max);

}  // namespace chorus::engine
