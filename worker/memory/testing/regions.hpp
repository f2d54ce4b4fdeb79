// Helpers of tests: regions, blocks and their memory.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "worker/memory/arena.hpp"

namespace chorus::memory::testing {

inline constexpr std::uint64_t mebi = 1 << 20;

inline std::unique_ptr<SharedRegion> make_region(std::uint64_t capacity = 64 * mebi) {
  auto region = SharedRegion::create(random_ticket(capacity));
  REQUIRE(region.has_value());
  return std::move(*region);
}

inline std::span<std::byte> allocated(Arena& arena, std::uint64_t size) {
  auto block = arena.allocate(size);
  REQUIRE(block.has_value());
  CHECK(block->size() == size);
  return *block;
}

inline std::span<std::byte> allocated_once(Arena& arena, std::uint64_t size) {
  auto block = arena.allocate_once(size);
  REQUIRE(block.has_value());
  return *block;
}

inline std::shared_ptr<PeerRegion const> opened(Ticket const& ticket) {
  auto region = PeerRegion::open(ticket);
  REQUIRE(region.has_value());
  return *region;
}

// Returns these bytes in a peer's mapping. The peer may still write there after a withdrawal.
inline std::span<std::byte> as_seen_by(PeerRegion const& peer, Arena const& arena, std::span<std::byte const> block) {
  auto const offset = arena.offset_of(block);
  REQUIRE(offset.has_value());
  return peer.mapping().at(*offset, block.size());
}

inline bool all_are(std::span<std::byte const> bytes, int value) {
  return std::ranges::all_of(bytes, [value](auto b) { return b == static_cast<std::byte>(value); });
}

inline void fill(std::span<std::byte> bytes, int value) { std::memset(bytes.data(), value, bytes.size()); }

// How much of /dev/shm the region's file uses.
inline std::uint64_t bytes_in_memory(Mapping const& mapping) {
  struct stat file {};
  REQUIRE(fstat(mapping.descriptor(), &file) == 0);
  return static_cast<std::uint64_t>(file.st_blocks) * 512;
}

// The process's private memory: granted ("VmData") or in use ("RssAnon").
inline std::uint64_t own_bytes(std::string const& which) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == which + ':') {
      std::uint64_t kibi = 0;
      status >> kibi;
      return kibi * 1024;
    }
  return 0;
}

}  // namespace chorus::memory::testing
