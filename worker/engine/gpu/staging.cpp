#include "worker/engine/gpu/staging.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/program/run_state.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t block_bytes_min = 4 << 10;
// Copying a usual block takes 20 us on PCIe 5, as long as the driver calls per block on both sides
// (docs/explanation/gpu.md). Long messages have larger blocks, which make the calls negligible, but not so large that
// the first and the last copy, which overlap with nothing, matter.
constexpr std::uint64_t block_bytes_usual = 1 << 20, block_bytes_max = 4 << 20, blocks_per_long_message = 8;
// Blocks granted to a peer beyond one per message: one being received, one being copied in and one being reduced.
constexpr std::uint64_t blocks_ahead = 3;

std::uint64_t blocks_of(std::uint64_t bytes, std::uint64_t block_bytes) {
  return (bytes + block_bytes - 1) / block_bytes;
}

// What a channel has to stage, for any block size.
struct Load {
  std::vector<std::uint64_t> received;  // bytes of messages that come with a grant
  std::uint64_t eager_bytes = 0;        // of eager places
  std::vector<std::uint64_t> sent;
};

Load load_of(plan::Program const& program, ChannelMessages const& messages,
             std::vector<std::uint64_t> const& instruction_bytes, std::uint64_t eager_bytes) {
  Load load;
  EagerBudget budget(eager_bytes);
  for (auto const i : messages.receives) {
    auto const bytes = instruction_bytes[i];
    if (bytes == 0) continue;
    if (budget.admits(bytes, program.instructions[i].chunks))
      load.eager_bytes += EagerBudget::stage_bytes(bytes);
    else
      load.received.push_back(bytes);
  }
  for (auto const i : messages.sends)
    if (instruction_bytes[i] != 0) load.sent.push_back(instruction_bytes[i]);
  return load;
}

std::uint64_t all_blocks(std::vector<std::uint64_t> const& messages, std::uint64_t block_bytes) {
  std::uint64_t blocks = 0;
  for (auto const bytes : messages) blocks += blocks_of(bytes, block_bytes);
  return blocks;
}

Staging laid_out(std::vector<Load> const& loads, std::uint64_t block_bytes) {
  Staging staging;
  staging.block_bytes = block_bytes;
  staging.channels.resize(loads.size());
  auto const take = [&staging](std::uint64_t bytes) { return std::exchange(staging.bytes, staging.bytes + bytes); };
  for (std::size_t c = 0; c < loads.size(); ++c) {
    auto& channel = staging.channels[c];
    auto const& received = loads[c].received;
    auto const wanted = received.empty() ? 0 : received.size() + blocks_ahead;
    channel.receive_blocks = static_cast<std::uint32_t>(std::min(all_blocks(received, block_bytes), wanted));
    channel.receive_at = take(channel.receive_blocks * block_bytes);
  }
  for (std::size_t c = 0; c < loads.size(); ++c) { staging.channels[c].eager_at = take(loads[c].eager_bytes); }
  staging.bytes = blocks_of(staging.bytes, block_bytes) * block_bytes;
  staging.received_bytes = staging.bytes;
  for (std::size_t c = 0; c < loads.size(); ++c) {
    auto& channel = staging.channels[c];
    channel.send_blocks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(all_blocks(loads[c].sent, block_bytes), ChannelStaging::send_blocks_max));
    channel.send_at = take(channel.send_blocks * block_bytes);
  }
  return staging;
}

}  // namespace

Staging plan_staging(plan::Program const& program, std::vector<ChannelMessages> const& messages,
                     std::vector<std::uint64_t> const& instruction_bytes, std::uint64_t eager_bytes,
                     std::uint64_t bytes_max) {
  std::vector<Load> loads;
  std::uint64_t largest = 0;
  for (auto const& channel : messages) {
    loads.push_back(load_of(program, channel, instruction_bytes, eager_bytes));
    for (auto const* all : {&loads.back().received, &loads.back().sent})
      for (auto const bytes : *all) largest = std::max(largest, bytes);
  }
  auto block_bytes = block_bytes_min;
  while (block_bytes < largest && block_bytes < block_bytes_usual) block_bytes *= 2;
  while (block_bytes < block_bytes_max && largest / (2 * block_bytes) >= blocks_per_long_message) block_bytes *= 2;
  auto staging = laid_out(loads, block_bytes);
  while (staging.bytes > bytes_max && block_bytes > block_bytes_min) staging = laid_out(loads, block_bytes /= 2);
  return staging;
}

}  // namespace chorus::engine
