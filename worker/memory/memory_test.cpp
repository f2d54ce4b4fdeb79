// Shared memory: what is found, what is refused, what survives truncation and death.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "worker/memory/arena.hpp"
#include "worker/memory/errc.hpp"
#include "worker/memory/region_book.hpp"

using namespace chorus;
using namespace chorus::memory;

namespace {

constexpr std::uint64_t mebi = 1 << 20;

std::unique_ptr<SharedRegion> make_region(std::uint64_t capacity = 64 * mebi) {
  auto region = SharedRegion::create(random_ticket(capacity));
  REQUIRE(region.has_value());
  return std::move(*region);
}

std::span<std::byte> allocated(Arena& arena, std::uint64_t size) {
  auto block = arena.allocate(size);
  REQUIRE(block.has_value());
  CHECK(block->size() == size);
  return *block;
}

std::shared_ptr<PeerRegion const> opened(Ticket const& ticket) {
  auto region = PeerRegion::open(ticket);
  REQUIRE(region.has_value());
  return *region;
}

void fill(std::span<std::byte> bytes, int value) { std::memset(bytes.data(), value, bytes.size()); }

bool exists(Ticket const& ticket) {
  auto const descriptor = shm_open(('/' + file_name(ticket)).c_str(), O_RDONLY, 0);
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0;
}

// Makes a region in a process of its own, which is killed.
Ticket region_of_a_dead_process() {
  auto const ticket = random_ticket(4 * mebi);
  auto const pid = fork();
  if (pid == 0) {
    auto const region = SharedRegion::create(ticket);
    kill(getpid(), SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  return ticket;
}

}  // namespace

TEST_CASE("what one mapping writes the other reads") {
  Arena arena(make_region());
  auto const block = allocated(arena, 5000);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = peer->mapping().at(*arena.offset_of(block), block.size());
  REQUIRE(there.size() == block.size());
  CHECK(there.data() != block.data());
  CHECK(std::equal(there.begin(), there.end(), block.begin()));
  fill(there, 9);
  CHECK(block[4999] == std::byte{9});
}

TEST_CASE("a region is found by its name and proved by its nonce") {
  auto const region = make_region();
  auto const refused = [](Ticket const& ticket) {
    auto const result = PeerRegion::open(ticket);
    REQUIRE(result.has_error());
    return result.error().code;
  };
  auto namesake = region->ticket();
  namesake.nonce[1] ^= 1;
  CHECK(refused(namesake) == MemoryErrc::not_shared);
  CHECK(refused(random_ticket(4 * mebi)) == MemoryErrc::not_shared);
  CHECK(refused(Ticket{}) == MemoryErrc::not_shared);
  auto larger = region->ticket();
  larger.capacity_bytes *= 2;
  CHECK(refused(larger) == MemoryErrc::damaged);
  larger.capacity_bytes = ~std::uint64_t{0};
  CHECK(refused(larger) == MemoryErrc::damaged);
}

TEST_CASE("offsets and sizes from outside never reach beyond the region") {
  auto const region = make_region(4 * mebi);
  auto const& mapping = region->mapping();
  constexpr auto most = ~std::uint64_t{0};
  CHECK(mapping.at(4 * mebi - 10, 10).size() == 10);
  CHECK(mapping.at(4 * mebi - 10, 11).empty());
  CHECK(mapping.at(4 * mebi + 1, 0).data() == nullptr);
  CHECK(mapping.at(10, most).empty());
  CHECK(mapping.at(most, 10).empty());
  CHECK(mapping.at(most - 5, most - 5).empty());
}

TEST_CASE("a region that is truncated under its readers is broken, and nobody crashes") {
  Arena arena(make_region());
  auto const block = allocated(arena, 3 * mebi);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = peer->mapping().at(*arena.offset_of(block), block.size());
  REQUIRE(there[2 * mebi] == std::byte{7});
  CHECK_FALSE(peer->mapping().is_broken());
  REQUIRE(ftruncate(peer->mapping().descriptor(), 4096) == 0);
  CHECK(there[2 * mebi] == std::byte{0});
  CHECK(peer->mapping().is_broken());
  fill(there, 1);
  fill(block, 2);
  CHECK(arena.mapping().is_broken());
}

TEST_CASE("a region that is truncated before it is read is broken, also if something is allocated in between") {
  Arena arena(make_region());
  auto const block = allocated(arena, 3 * mebi);
  fill(block, 7);
  REQUIRE(ftruncate(arena.mapping().descriptor(), 4096) == 0);
  REQUIRE(arena.allocate_once(100).has_value());
  CHECK(block[2 * mebi] == std::byte{0});
  CHECK(arena.mapping().is_broken());
}

TEST_CASE("an unlinked region still works for those who have it, and is not found by others") {
  auto const region = make_region();
  auto const peer = opened(region->ticket());
  shm_unlink(('/' + file_name(region->ticket())).c_str());
  region->mapping().head().bell = 5;
  CHECK(peer->mapping().head().bell == 5);
  CHECK(PeerRegion::open(region->ticket()).has_error());
}

TEST_CASE("peers see whether the owner lives, and what it leaves behind is removed") {
  auto const alive = make_region();
  CHECK(opened(alive->ticket())->owner_lives());
  auto const dead = region_of_a_dead_process();
  CHECK_FALSE(opened(dead)->owner_lives());
  CHECK(exists(dead));
  CHECK(remove_abandoned() >= 1);
  CHECK_FALSE(exists(dead));
  CHECK(exists(alive->ticket()));
}

TEST_CASE("a region disappears with its owner") {
  Ticket ticket;
  {
    auto const region = make_region();
    ticket = region->ticket();
    CHECK(exists(ticket));
  }
  CHECK_FALSE(exists(ticket));
}

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

TEST_CASE("a full arena says so") {
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

TEST_CASE("withdrawn memory keeps its contents, and others do not reach it any more") {
  Arena arena(make_region());
  auto const block = allocated(arena, 3 * mebi);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = peer->mapping().at(*arena.offset_of(block), block.size());
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

TEST_CASE("the place of a block that is allocated once is never used again") {
  Arena arena(make_region(8 * mebi));
  auto const once = arena.allocate_once(100000);
  REQUIRE(once.has_value());
  CHECK(std::all_of(once->begin(), once->end(), [](auto b) { return b == std::byte{0}; }));
  arena.retire(*once);
  auto const again = arena.allocate_once(100000);
  REQUIRE(again.has_value());
  CHECK(again->data() + again->size() <= once->data());
}

TEST_CASE("a region is mapped once for all who use it") {
  RegionBook book;
  auto const region = make_region();
  auto const one = book.open(region->ticket());
  auto const other = book.open(region->ticket());
  REQUIRE(one.has_value());
  CHECK(other->get() == one->get());
  auto namesake = region->ticket();
  namesake.nonce[0] ^= 1;
  CHECK(book.open(namesake).has_error());
}
