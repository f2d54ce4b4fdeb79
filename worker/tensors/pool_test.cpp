// Pools: where memory of tensors comes from, and how much of it is kept.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

#include "worker/tensors/errc.hpp"
#include "worker/tensors/memory.hpp"

using namespace chorus;
using namespace chorus::tensors;

namespace {

constexpr std::size_t mebibyte = 1 << 20;

std::shared_ptr<memory::Arena> arena_of(std::uint64_t capacity_bytes) {
  return std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(capacity_bytes)).value());
}

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096;
}

bool is_aligned(Block const& block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block.data()) % alignment == 0;
}

}  // namespace

TEST_CASE("blocks are aligned for vector instructions, large ones for pages and huge pages") {
  Pool pool(0, 64 * mebibyte);
  for (std::size_t size : {0U, 1U, 63U, 64U, 65U, 4095U}) CHECK(is_aligned(*pool.acquire(size).value(), 64));
  CHECK(is_aligned(*pool.acquire(4096).value(), 4096));
  CHECK(is_aligned(*pool.acquire(3 * mebibyte).value(), 2 * mebibyte));
  CHECK(pool.acquire(5).value()->size_bytes() == 5);
}

TEST_CASE("a returned block is used again for the same size") {
  Pool pool(16 * mebibyte, 64 * mebibyte);
  auto const* const first = pool.acquire(mebibyte).value()->data();
  CHECK(pool.kept_bytes() == mebibyte);
  auto const again = pool.acquire(mebibyte - 100).value();
  CHECK(again->data() == first);
  CHECK(again->size_bytes() == mebibyte - 100);
  CHECK(pool.kept_bytes() == 0);
  CHECK(pool.in_use_bytes() == mebibyte);
}

TEST_CASE("a limit beyond all memory is none") {
  auto const arena = arena_of(64 * mebibyte);
  Pool pool(0, std::numeric_limits<std::size_t>::max(), arena);
  auto const block = pool.acquire(16 * mebibyte);
  REQUIRE(block.has_value());
  CHECK(arena->owns((*block)->data()));
  CHECK(pool.use().private_bytes == 0);
}

TEST_CASE("a block is not wasted on something much smaller") {
  Pool pool(16 * mebibyte, 64 * mebibyte);
  static_cast<void>(pool.acquire(4 * mebibyte).value());
  static_cast<void>(pool.acquire(mebibyte).value());
  CHECK(pool.kept_bytes() == 5 * mebibyte);
}

TEST_CASE("the pool keeps no more than it may, and forgets the oldest first") {
  Pool pool(2 * mebibyte, 64 * mebibyte);
  auto a = pool.acquire(mebibyte).value(), b = pool.acquire(mebibyte).value(), c = pool.acquire(mebibyte).value();
  auto const* const kept = c->data();
  a.reset();
  b.reset();
  c.reset();
  CHECK(pool.kept_bytes() == 2 * mebibyte);
  auto const x = pool.acquire(mebibyte).value(), y = pool.acquire(mebibyte).value();
  CHECK((x->data() == kept || y->data() == kept));
  static_cast<void>(pool.acquire(8 * mebibyte).value());
  CHECK(pool.kept_bytes() == 0);
}

TEST_CASE("above the limit there is no memory, and kept blocks make room") {
  Pool pool(4 * mebibyte, 4 * mebibyte);
  auto const first = pool.acquire(3 * mebibyte).value();
  auto const refused = pool.acquire(2 * mebibyte).error();
  CHECK(refused.code == TensorErrc::out_of_memory);
  CHECK(refused.detail == "2097152 bytes asked for, 3145728 of 4194304 in use");
  CHECK(pool.acquire(~std::size_t{0}).error().code == TensorErrc::out_of_memory);
  static_cast<void>(pool.acquire(mebibyte).value());
  CHECK(pool.kept_bytes() == mebibyte);
  CHECK(pool.acquire(mebibyte / 2).has_value());
  CHECK(pool.in_use_bytes() + pool.kept_bytes() <= 4 * mebibyte);
}

TEST_CASE("a withdrawn block is not kept: the next one is shared again") {
  auto const arena =
      std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(64 * mebibyte)).value());
  Pool pool(16 * mebibyte, 64 * mebibyte, arena);
  auto block = pool.acquire(4 * mebibyte).value();
  REQUIRE(arena->offset_of(block->bytes()).has_value());
  REQUIRE(arena->withdraw(block->bytes().first(mebibyte)).has_value());
  block.reset();
  CHECK(pool.kept_bytes() == 0);
  CHECK(arena->offset_of(pool.acquire(4 * mebibyte).value()->bytes()).has_value());
}

TEST_CASE("memory that was kept for a while is returned to the system, and memory used since then stays") {
  for (auto const& arena : {std::shared_ptr<memory::Arena>(), arena_of(256 * mebibyte)}) {
    CAPTURE(arena != nullptr);
    Pool pool(128 * mebibyte, 256 * mebibyte, arena);
    auto const touched = [&pool](std::size_t bytes) {
      auto block = pool.acquire(bytes).value();
      std::ranges::fill(block->bytes(), std::byte{1});
      return block;
    };
    auto old = touched(64 * mebibyte), small = touched(mebibyte), newer = touched(16 * mebibyte);
    auto const resident = resident_bytes();
    old.reset();
    small.reset();
    auto const then = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() == then) continue;
    newer.reset();
    CHECK(pool.kept_bytes() == 81 * mebibyte);
    pool.give_back(then);
    CHECK(pool.kept_bytes() == 16 * mebibyte);
    CHECK(pool.use().idle_bytes >= 65 * mebibyte);
    CHECK(resident_bytes() + 60 * mebibyte < resident);
    pool.give_back(std::chrono::steady_clock::now());
    CHECK(pool.kept_bytes() == 0);
    CHECK(resident_bytes() + 76 * mebibyte < resident);
    if (arena != nullptr) CHECK(arena->backed_bytes() == 0);
  }
}

TEST_CASE("a block that the arena has no room for is private, counted, and replaced by a shared one later") {
  auto const arena = arena_of(16 * mebibyte);
  Pool pool(64 * mebibyte, 256 * mebibyte, arena);
  auto first = pool.acquire(12 * mebibyte).value();
  CHECK(pool.use().lacks == 0);
  auto second = pool.acquire(12 * mebibyte).value();
  CHECK_FALSE(arena->offset_of(second->bytes()).has_value());
  CHECK(pool.use().lacks == 1);
  CHECK(pool.use().private_bytes == 12 * mebibyte);
  CHECK(pool.use().last_lack.find("12582912 bytes") != std::string::npos);
  // The private memory is kept, but the next block is shared as soon as there is room.
  second.reset();
  CHECK(pool.use().private_bytes == 0);
  first.reset();
  auto const third = pool.acquire(12 * mebibyte).value();
  CHECK(arena->offset_of(third->bytes()).has_value());
  auto const fourth = pool.acquire(12 * mebibyte).value();
  CHECK(pool.use().lacks == 2);
  // The kept private memory is used again.
  CHECK(pool.use().kept_bytes == 0);
  CHECK(pool.use().private_bytes == 12 * mebibyte);
}

TEST_CASE("kept memory gives way before a block goes without shared memory") {
  auto const arena = arena_of(16 * mebibyte);
  Pool pool(64 * mebibyte, 256 * mebibyte, arena);
  for (int i = 0; i < 3; ++i) static_cast<void>(pool.acquire(static_cast<std::size_t>(3 + i) * mebibyte).value());
  CHECK(pool.kept_bytes() > 0);
  auto const large = pool.acquire(13 * mebibyte).value();
  CHECK(arena->offset_of(large->bytes()).has_value());
  CHECK(pool.use().lacks == 0);
  CHECK(pool.use().needed_bytes > 0);
}

TEST_CASE("a pool has no more of the system's memory than its limit, however its blocks lie") {
  auto const arena = arena_of(512 * mebibyte);
  Pool pool(16 * mebibyte, 64 * mebibyte, arena);
  // Each block begins at a huge page, so half of its second huge page is a gap.
  std::vector<std::shared_ptr<Block>> all;
  for (;;) {
    auto block = pool.acquire(3 * mebibyte);
    if (!block) {
      CHECK(block.error().code == TensorErrc::out_of_memory);
      break;
    }
    all.push_back(std::move(*block));
  }
  CHECK(all.size() >= 16);
  CHECK(arena->backed_bytes() + pool.use().private_bytes <= 68 * mebibyte);
  // Gaps after deleted tensors count, too.
  all.clear();
  for (int i = 0; i < 60; ++i) all.push_back(pool.acquire(mebibyte).value());
  for (std::size_t i = 0; i < all.size(); i += 2) all[i].reset();
  pool.give_back(std::chrono::steady_clock::now());
  CHECK(pool.in_use_bytes() == 30 * mebibyte);
  auto const large = pool.acquire(30 * mebibyte);
  CHECK(arena->backed_bytes() + pool.use().private_bytes <= 68 * mebibyte);
}

TEST_CASE("a block outlives its pool") {
  std::shared_ptr<Block> block;
  {
    Pool pool(mebibyte, mebibyte);
    block = pool.acquire(100).value();
  }
  std::fill_n(block->data(), 100, std::byte{7});
  CHECK(block->bytes()[99] == std::byte{7});
}
