// Shared regions: what is found, what is refused, what survives truncation and the owner's death.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/faults/few_descriptors.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/regions/region_registry.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;

namespace {

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

TEST_CASE("one mapping reads what the other one writes") {
  Arena arena(make_region());
  auto const block = allocated(arena, 5000);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = as_seen_by(*peer, arena, block);
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

TEST_CASE("a region that is truncated while it is mapped is broken, and its readers do not crash") {
  Arena arena(make_region());
  auto const block = allocated(arena, 3 * mebi);
  fill(block, 7);
  auto const peer = opened(arena.ticket());
  auto const there = as_seen_by(*peer, arena, block);
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
  CHECK(arena.mapping().is_whole());
  REQUIRE(ftruncate(arena.mapping().descriptor(), 4096) == 0);
  CHECK_FALSE(arena.mapping().is_whole());
  CHECK_FALSE(arena.mapping().is_broken());  // nothing was read there
  REQUIRE(arena.allocate_once(100).has_value());
  CHECK(block[2 * mebi] == std::byte{0});
  CHECK(arena.mapping().is_broken());
}

TEST_CASE("an unlinked region still works for processes that have mapped it, and is not found by others") {
  auto const region = make_region();
  auto const peer = opened(region->ticket());
  shm_unlink(('/' + file_name(region->ticket())).c_str());
  region->mapping().head().bell = 5;
  CHECK(peer->mapping().head().bell == 5);
  CHECK(PeerRegion::open(region->ticket()).has_error());
}

TEST_CASE("peers detect whether the owner lives, and the file of a dead owner is removed") {
  auto const alive = make_region();
  CHECK(opened(alive->ticket())->owner_lives());
  auto const dead = region_of_a_dead_process();
  CHECK_FALSE(opened(dead)->owner_lives());
  CHECK(exists(dead));
  CHECK(remove_abandoned() >= 1);
  CHECK_FALSE(exists(dead));
  CHECK(exists(alive->ticket()));
}

TEST_CASE("a region can be made while another process checks whether it is abandoned") {
  std::vector<Ticket> tickets(2000);
  for (auto& ticket : tickets) ticket = random_ticket(region_unit_bytes);
  std::atomic<std::size_t> next = 0;
  std::thread other([&] {
    for (auto i = next.load(); i < tickets.size(); i = next) {
      // What remove_abandoned() does, at the worst moment.
      auto const descriptor = shm_open(('/' + file_name(tickets[i])).c_str(), O_RDWR | O_CLOEXEC, 0);
      if (descriptor < 0) continue;
      flock(descriptor, LOCK_EX | LOCK_NB);
      close(descriptor);
    }
  });
  int failed = 0;
  for (; next < tickets.size(); ++next)
    if (SharedRegion::create(tickets[next]).has_error()) ++failed;
  other.join();
  CHECK(failed == 0);
}

TEST_CASE("a lack of descriptors here does not mean that a peer's region does not exist") {
  auto const region = make_region();
  auto const code = [&] {
    chorus::testing::FewDescriptors const few;
    return PeerRegion::open(region->ticket()).error().code;
  }();
  CHECK(code == MemoryErrc::unavailable);
  CHECK(PeerRegion::open(region->ticket()).has_value());
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

TEST_CASE("a region is mapped once for all its users") {
  RegionRegistry book;
  auto const region = make_region();
  auto const one = book.open(region->ticket());
  auto const other = book.open(region->ticket());
  REQUIRE(one.has_value());
  CHECK(other->get() == one->get());
  auto namesake = region->ticket();
  namesake.nonce[0] ^= 1;
  CHECK(book.open(namesake).has_error());
}
