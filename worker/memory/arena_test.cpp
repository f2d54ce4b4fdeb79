// Blocks in a region: their offsets, what other processes still reach of them, and when their ranges are used again.
#include "worker/memory/arena.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;

TEST_CASE("blocks are aligned, apart, and used again") {
  Arena arena(make_region());
  auto const aligned = [](std::span<std::byte> block, std::uintptr_t to) {
    return reinterpret_cast<std::uintptr_t>(block.data()) % to == 0;
  };
  auto const before = arena.used_bytes();
  auto const small = allocated(arena, 10), other = allocated(arena, 100);
  auto const page = allocated(arena, 5000), huge = allocated(arena, 3 * mebi), empty = allocated(arena, 0);
  CHECK(aligned(small, 64));
  CHECK(aligned(other, 64));
  CHECK(aligned(page, 4096));
  CHECK(aligned(huge, 2 * mebi));
  for (auto const block : {small, other, page, huge}) fill(block, static_cast<int>(block.size() % 251));
  for (auto const block : {small, other, page, huge})
    CHECK(std::all_of(block.begin(), block.end(), [&](auto b) { return b == std::byte(block.size() % 251); }));
  auto* const place = huge.data();
  for (auto const block : {huge, small, page, empty, other}) arena.free(block.data());
  CHECK(arena.used_bytes() == before);
  CHECK(allocated(arena, 60 * mebi).data() <= place);
}

TEST_CASE("a full arena refuses allocations") {
  Arena arena(make_region(4 * mebi));
  auto const too_large = arena.allocate(5 * mebi);
  REQUIRE(too_large.has_error());
  CHECK(too_large.error().code == MemoryErrc::unavailable);
  CHECK(arena.allocate(~std::uint64_t{0}).has_error());
  auto const half = allocated(arena, 2 * mebi);
  CHECK(arena.allocate(2 * mebi).has_error());
  arena.free(half.data());
  allocated(arena, 2 * mebi);
}

namespace {

bool are_apart(std::span<std::byte const> a, std::span<std::byte const> b) {
  return a.data() + a.size() <= b.data() || b.data() + b.size() <= a.data();
}

}  // namespace

TEST_CASE("withdrawn memory keeps its contents, and others do not reach it any more") {
  Arena arena(make_region());
  auto const block = allocated(arena, 3 * mebi);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = as_seen_by(*peer, arena, block);
  REQUIRE(arena.withdraw(block.subspan(mebi, mebi)).has_value());
  fill(there, 9);
  CHECK(block[0] == std::byte{9});
  CHECK(block[mebi] == std::byte{7});
  CHECK(block[2 * mebi - 1] == std::byte{7});
  CHECK_FALSE(arena.offset_of(block).has_value());
  auto* const place = block.data();
  arena.free(block.data());
  CHECK(allocated(arena, 3 * mebi).data() != place);
}

TEST_CASE("bytes of several blocks are shared as long as all of these are, and withdrawn with all of them") {
  Arena arena(make_region());
  auto const first = allocated(arena, 65536), second = allocated(arena, 65536), third = allocated(arena, 65536);
  REQUIRE(first.data() + first.size() == second.data());
  std::span const both(first.data(), first.size() + second.size());
  CHECK(arena.offset_of(both).has_value());
  auto const changes = arena.changes();
  REQUIRE(arena.withdraw(second).has_value());
  CHECK(arena.changes() != changes);
  CHECK_FALSE(arena.offset_of(both).has_value());
  CHECK(arena.offset_of(first).has_value());
  REQUIRE(arena.withdraw(std::span(second.data(), 2 * second.size())).has_value());
  CHECK_FALSE(arena.offset_of(third).has_value());
}

TEST_CASE("small blocks share pages, large ones do not") {
  Arena arena(make_region());
  CHECK_FALSE(arena.has_own_pages(allocated(arena, 4000)));
  CHECK(arena.has_own_pages(allocated(arena, 4096)));
  CHECK(arena.has_own_pages(allocated(arena, 100000).subspan(50, 10)));
}

TEST_CASE("a withdrawn block that is freed takes no memory, and its range is not used before readmit()") {
  Arena arena(make_region());
  auto const block = allocated(arena, 8 * mebi);
  auto const peer = opened(arena.ticket());
  auto const there = as_seen_by(*peer, arena, block);
  fill(block, 7);
  auto const withdrawn = arena.withdraw(block).value();
  auto const before = own_bytes("RssAnon");
  arena.free(block.data());
  CHECK(own_bytes("RssAnon") + 7 * mebi < before);
  CHECK(bytes_in_memory(arena.mapping()) < 2 * mebi);
  fill(there, 9);
  CHECK(all_are(block, 9));  // the range is mapped to the file again
  CHECK(are_apart(allocated(arena, 8 * mebi), block));
  arena.readmit(withdrawn);
  auto const again = allocated(arena, 8 * mebi);
  CHECK(again.data() == block.data());
  fill(again, 3);
  CHECK(all_are(there, 3));
}

TEST_CASE("a readmitted block is shared again after it was freed") {
  Arena arena(make_region());
  auto const block = allocated(arena, 4 * mebi);
  fill(block, 7);
  arena.readmit(arena.withdraw(block).value());
  CHECK_FALSE(arena.offset_of(block).has_value());
  CHECK(all_are(block, 7));
  arena.free(block.data());
  auto const again = allocated(arena, 4 * mebi);
  CHECK(again.data() == block.data());
  fill(again, 3);
  CHECK(all_are(as_seen_by(*opened(arena.ticket()), arena, again), 3));
}

TEST_CASE("of a block that was withdrawn in part the rest is used again") {
  Arena arena(make_region());
  auto const block = allocated(arena, 6 * mebi);
  auto const withdrawn = arena.withdraw(block.subspan(2 * mebi, 2 * mebi)).value();
  arena.free(block.data());
  CHECK(allocated(arena, 2 * mebi).data() == block.data());
  CHECK(allocated(arena, 2 * mebi).data() == block.data() + 4 * mebi);
  arena.readmit(withdrawn);
  CHECK(allocated(arena, 2 * mebi).data() == block.data() + 2 * mebi);
}

TEST_CASE("a place that was withdrawn twice waits for both") {
  Arena arena(make_region());
  auto const block = allocated(arena, 4 * mebi);
  auto const one = arena.withdraw(block).value(), other = arena.withdraw(block).value();
  arena.free(block.data());
  arena.readmit(one);
  auto const elsewhere = allocated(arena, 4 * mebi);
  CHECK(are_apart(elsewhere, block));
  arena.readmit(other);
  CHECK(allocated(arena, 4 * mebi).data() == block.data());
}

TEST_CASE("a place between blocks in use is whole again when it is readmitted") {
  Arena arena(make_region());
  auto const before = allocated(arena, 65536), block = allocated(arena, 65536), behind = allocated(arena, 65536);
  fill(before, 1);
  fill(behind, 2);
  auto const peer = opened(arena.ticket());
  auto const there = as_seen_by(*peer, arena, block);
  auto const withdrawn = arena.withdraw(block).value();
  auto const memory = bytes_in_memory(arena.mapping());
  arena.free(block.data());
  CHECK(bytes_in_memory(arena.mapping()) == memory - 65536);
  arena.readmit(withdrawn);
  auto const again = allocated(arena, 65536);
  REQUIRE(again.data() == block.data());
  CHECK(bytes_in_memory(arena.mapping()) == memory);  // the memory came before the first use
  fill(again, 3);
  CHECK(all_are(there, 3));
  CHECK(all_are(before, 1));
  CHECK(all_are(behind, 2));
}

TEST_CASE("memory of withdrawn ranges is not kept for reuse") {
  Arena arena(make_region(128 * mebi));
  for (int i = 0; i < 20; ++i) {
    auto const block = allocated(arena, 2 * mebi);
    REQUIRE(arena.withdraw(block).has_value());
    arena.free(block.data());
  }
  auto const none = bytes_in_memory(arena.mapping());
  arena.free(allocated(arena, 2 * mebi).data());
  CHECK(bytes_in_memory(arena.mapping()) == none + 2 * mebi);
}

TEST_CASE("a withdrawn range gets no memory together with its neighbours") {
  Arena arena(make_region(128 * mebi));
  auto const block = allocated(arena, mebi), neighbour = allocated(arena, 65536);
  std::vector<std::span<std::byte>> others;
  for (int i = 0; i < 20; ++i) others.push_back(allocated(arena, 2 * mebi));
  for (auto const other : others) arena.free(other.data());
  REQUIRE(arena.withdraw(block).has_value());
  arena.free(block.data());
  arena.free(neighbour.data());
  auto const before = bytes_in_memory(arena.mapping());
  auto const again = allocated(arena, 65536);
  CHECK(are_apart(again, block));
  CHECK(bytes_in_memory(arena.mapping()) < before + mebi);
}

TEST_CASE("a block that could not be withdrawn is not used for anything else") {
  Arena arena(make_region(256 * mebi));
  auto const block = allocated(arena, 128 * mebi);
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  rlimit const little{std::min<rlim_t>(own_bytes("VmData") + 64 * mebi, before.rlim_max), before.rlim_max};
  setrlimit(RLIMIT_DATA, &little);
  bool const is_refused = arena.withdraw(block).has_error();
  setrlimit(RLIMIT_DATA, &before);
  REQUIRE(is_refused);
  arena.free(block.data());
  CHECK(are_apart(allocated(arena, 2 * mebi), block));
}

TEST_CASE("the place of a block that is allocated once is never used again") {
  Arena arena(make_region(8 * mebi));
  auto const once = allocated_once(arena, 100000);
  CHECK(all_are(once, 0));
  arena.retire(once);
  while (auto const again = arena.allocate_once(100000)) CHECK(are_apart(*again, once));
  while (auto const other = arena.allocate(2 * mebi)) CHECK(are_apart(*other, once));
}

TEST_CASE("small blocks that are allocated once lie close together") {
  Arena arena(make_region(8 * mebi));
  for (int i = 0; i < 50; ++i) arena.retire(allocated_once(arena, 80000));
  CHECK(arena.allocate(2 * mebi).has_value());
}

TEST_CASE("a block near the end of the region keeps no others from being allocated once") {
  Arena arena(make_region(16 * mebi));
  std::vector<std::span<std::byte>> all;
  while (auto const block = arena.allocate(2 * mebi)) {
    fill(*block, 7);
    all.push_back(*block);
  }
  REQUIRE(all.size() == 7);
  for (auto const i : {0, 1, 2, 3, 4, 6}) arena.free(all[static_cast<std::size_t>(i)].data());
  CHECK(all_are(allocated_once(arena, 3 * mebi), 0));
  CHECK(all_are(allocated_once(arena, 100000), 0));
}

TEST_CASE("without memory, allocate_once() uses up no range") {
  struct statvfs shm {};
  REQUIRE(statvfs("/dev/shm", &shm) == 0);
  std::uint64_t const all_of_it = shm.f_blocks * shm.f_frsize / mebi * mebi;
  if (all_of_it == 0 || all_of_it > std::uint64_t{1} << 42) return;  // no limit, or more than can be mapped
  Arena arena(make_region(all_of_it + 8 * mebi));
  for (int i = 0; i < 3; ++i) {
    auto const refused = arena.allocate_once(all_of_it + 4 * mebi);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == MemoryErrc::unavailable);
  }
  CHECK(arena.allocate_once(4 * mebi).has_value());
  CHECK(arena.allocate(4 * mebi).has_value());
}

TEST_CASE("a block that is retired later stays until 64 MiB of newer blocks wait") {
  Arena arena(make_region(256 * mebi));
  std::vector<std::span<std::byte>> left;
  for (int i = 0; i < 3; ++i) {
    left.push_back(allocated_once(arena, 24 * mebi));
    fill(left.back(), 7);
  }
  arena.retire_later(left[0]);
  arena.retire_later(left[1]);
  CHECK(all_are(left[0], 7));
  arena.retire_later(left[2]);
  CHECK(all_are(left[0], 0));
  CHECK(all_are(left[1], 7));
  CHECK(all_are(left[2], 7));
  CHECK(arena.used_bytes() == 48 * mebi);
}

TEST_CASE("memory that was unused for a while is returned to the system, and used memory stays") {
  Arena arena(make_region());
  auto const at_first = bytes_in_memory(arena.mapping());
  auto const used = allocated(arena, 100), freed = allocated(arena, 9 * mebi), left = allocated_once(arena, 3 * mebi);
  fill(used, 5);
  fill(left, 6);
  auto const before = Arena::TimePoint::clock::now();
  arena.free(freed.data());
  arena.retire_later(left);
  auto const after = Arena::TimePoint::clock::now();
  CHECK(arena.release_unused(before) + arena.retire_left(before) == 0);
  CHECK(bytes_in_memory(arena.mapping()) >= 14 * mebi);
  CHECK(arena.release_unused(after) == 10 * mebi);
  CHECK(arena.retire_left(after) == 3 * mebi);
  CHECK(arena.release_unused(after) + arena.retire_left(after) == 0);
  CHECK(bytes_in_memory(arena.mapping()) == at_first + 2 * mebi - region_head_bytes);
  CHECK(arena.backed_bytes() == 2 * mebi);
  CHECK(all_are(used, 5));
  fill(allocated(arena, 9 * mebi), 7);
  CHECK(bytes_in_memory(arena.mapping()) >= 11 * mebi);
  CHECK(arena.backed_bytes() == 12 * mebi);
}

TEST_CASE("an arena has no more memory than it may, gaps between blocks included") {
  Arena arena(make_region());
  std::vector<std::span<std::byte>> all;
  for (int i = 0; i < 16; ++i) all.push_back(allocated(arena, mebi));
  for (std::size_t i = 1; i + 1 < all.size(); i += 2) arena.free(all[i].data());
  // About half of the memory is gaps that are too small for the block.
  CHECK(arena.used_bytes() == 9 * mebi);
  CHECK(arena.backed_bytes() >= 14 * mebi);
  arena.allow(16 * mebi);
  auto const refused = arena.allocate(2 * mebi);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == MemoryErrc::at_ceiling);
  CHECK(arena.allocate(mebi).has_value());
  arena.allow(32 * mebi);
  CHECK(arena.allocate(2 * mebi).has_value());
}
