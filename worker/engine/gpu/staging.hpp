// How much pinned memory a run over a GPU's memory needs, and which part of it is whose.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/channel_messages.hpp"

namespace chorus::engine {

// What goes between the wire and the GPU lies meanwhile in blocks of pinned memory. Every block belongs to one channel
// and one direction, and is reserved before anything goes through one: nobody ever waits for one that somebody else may
// keep.
//
// Of messages that are received, each can always have one block: whichever of them the peer is able to send, it comes
// through. A few blocks more let the wire, the copies and the kernels work at the same time. Messages that come without
// a grant have a place each, for as long as the run lasts. Messages that are sent take their turn in a few blocks: they
// are copied only when the peer has granted them.
struct ChannelStaging {
  static constexpr std::uint32_t send_blocks_max = 4;  // being copied out, and two on the wire

  std::uint64_t receive_at = 0;  // offset of the first block, and so on
  std::uint32_t receive_blocks = 0;
  std::uint64_t eager_at = 0;
  std::uint64_t send_at = 0;
  std::uint32_t send_blocks = 0;
};

// Offsets count through all that is taken of the pool, in parts of a slot or a block, whichever is larger: no block
// crosses from one part to the next.
struct Staging {
  std::uint64_t block_bytes = 0;
  std::uint64_t received_bytes = 0;  // of blocks and places for what is received: they come first
  std::uint64_t bytes = 0;
  std::vector<ChannelStaging> channels;  // as program.channels
};

// In blocks as large as they are worth it, or smaller ones where it would be more than `bytes_max`. The smallest that
// are still more are given all the same.
[[nodiscard]] Staging plan_staging(plan::Program const& program, std::vector<ChannelMessages> const& messages,
                                   std::vector<std::uint64_t> const& instruction_bytes, std::uint64_t eager_bytes,
                                   std::uint64_t bytes_max);

}  // namespace chorus::engine
