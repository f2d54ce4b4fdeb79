// Amounts of pinned memory for runs, and their division.
#include "worker/engine/gpu/staging.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/program.hpp"
#include "worker/devices/cuda/pinned.hpp"
#include "worker/engine/program/addresses.hpp"

using namespace chorus;
using namespace chorus::engine;

namespace {

constexpr std::uint64_t plenty = std::uint64_t{1} << 40;
constexpr std::uint64_t kib = 1024;

// Rank 0 of an all_reduce of this many floats.
struct Planned {
  Planned(plan::Algorithm const& algorithm, std::uint32_t ranks, std::uint64_t elements)
      : program(
            plan::build(algorithm, {.op = Op::all_reduce, .algorithm = std::string(algorithm.name), .ranks = ranks}, 0)
                .value()),
        messages(channel_messages(program)),
        bytes(Addresses(program, {elements, {}, {}}, sizeof(float)).total_bytes()) {}

  [[nodiscard]] Staging staging(std::uint64_t eager_bytes, std::uint64_t bytes_max = plenty) const {
    return plan_staging(program, messages, bytes, eager_bytes, bytes_max);
  }

  plan::Program program;
  std::vector<ChannelMessages> messages;
  std::vector<std::uint64_t> bytes;
};

// All ranges of a staging, sorted by offset; they must not overlap.
std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks_of(Staging const& staging) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;
  for (auto const& channel : staging.channels) {
    for (std::uint32_t b = 0; b < channel.receive_blocks; ++b)
      blocks.emplace_back(channel.receive_at + b * staging.block_bytes, staging.block_bytes);
    for (std::uint32_t b = 0; b < channel.send_blocks; ++b)
      blocks.emplace_back(channel.send_at + b * staging.block_bytes, staging.block_bytes);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace

TEST_CASE("each message that a peer may send has a block, and three more are ahead; four are for sent messages") {
  Planned const ring(algorithms::ring, 8, 8 << 20);  // 4 MiB each, seven twice around
  auto const staging = ring.staging(0);
  CHECK(staging.block_bytes == 1024 * kib);
  for (std::size_t c = 0; c < staging.channels.size(); ++c) {
    auto const receives = ring.messages[c].receives.size();
    CHECK(staging.channels[c].receive_blocks == (receives == 0 ? 0 : receives + 3));
    CHECK(staging.channels[c].send_blocks == (ring.messages[c].sends.empty() ? 0 : 4));
  }
}

TEST_CASE("blocks are a part of their message, and larger than usual for long messages") {
  auto const block_bytes = [](std::uint64_t bytes) {  // of messages of this many bytes
    return Planned(algorithms::ring, 2, bytes / 2).staging(0).block_bytes;
  };
  CHECK(block_bytes(64 * kib) == 64 * kib);
  CHECK(block_bytes(1024 * kib) == 1024 * kib);
  CHECK(block_bytes(15 * 1024 * kib) == 1024 * kib);
  CHECK(block_bytes(16 * 1024 * kib) == 2 * 1024 * kib);
  CHECK(block_bytes(32 * 1024 * kib) == 4 * 1024 * kib);
  CHECK(block_bytes(512 * 1024 * kib) == 4 * 1024 * kib);
}

TEST_CASE("blocks do not overlap, lie within the area, and none crosses a part boundary") {
  for (auto const* algorithm : {&algorithms::ring, &algorithms::mesh, &algorithms::tree})
    for (std::uint64_t const elements : {100u, 5'000u, 3'000'001u, 90'000'001u})
      for (std::uint64_t const eager : {std::uint64_t{0}, 64 * kib}) {
        auto const staging = Planned(*algorithm, 5, elements).staging(eager);
        std::uint64_t end = 0;
        for (auto const& [begin, size] : blocks_of(staging)) {
          CHECK(begin >= end);
          end = begin + size;
          auto const part = std::max(staging.block_bytes, devices::PinnedPool::slot_bytes);
          CHECK(begin / part == (end - 1) / part);
        }
        CHECK(end <= staging.bytes);
        CHECK(staging.received_bytes <= staging.bytes);
      }
}

TEST_CASE("eager messages have places instead of blocks") {
  auto const staging = Planned(algorithms::mesh, 4, 1000).staging(64 * kib);
  for (auto const& channel : staging.channels) CHECK(channel.receive_blocks == 0);
  CHECK(staging.received_bytes >= 3 * 1000);
}

TEST_CASE("where memory is short blocks are smaller, down to 4 KiB, and as many as needed all the same") {
  Planned const ring(algorithms::ring, 8, 8 << 20);
  auto const all = ring.staging(0).bytes;
  auto const half = ring.staging(0, all - 1);
  CHECK(half.block_bytes == 512 * kib);
  CHECK(half.bytes == all / 2);
  auto const least = ring.staging(0, 1);
  CHECK(least.block_bytes == 4 * kib);
  CHECK(least.channels[0].receive_blocks == half.channels[0].receive_blocks);
}

TEST_CASE("messages that are read in place, or shown there, need no blocks") {
  Planned ring(algorithms::ring, 4, 1 << 20);
  for (auto& messages : ring.messages) messages.receives.clear();
  CHECK(ring.staging(0).received_bytes == 0);
  for (auto& messages : ring.messages) messages.sends.clear();
  CHECK(ring.staging(0).bytes == 0);
}
