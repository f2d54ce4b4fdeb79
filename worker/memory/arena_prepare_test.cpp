// How an arena gets and returns memory: without holding its lock, and after the block was reserved.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <thread>

#include "worker/memory/arena.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;

namespace {

// Where the system has no memory for any region: it gives none from this offset on, and takes back what it has given.
std::atomic<off_t> full_from{std::numeric_limits<off_t>::max()};

}  // namespace

// Instead of that of the C library.
extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  if ((mode & FALLOC_FL_PUNCH_HOLE) == 0 && offset + size > full_from) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fallocate, descriptor, mode, offset, size));
}

namespace {

// While a Lack exists, the system gives the region no memory and takes none back.
class Lack {
 public:
  explicit Lack(Mapping const& mapping) : descriptor_(mapping.descriptor()), kept_(dup(descriptor_)) {
    auto const elsewhere = open("/dev/null", O_RDWR);
    REQUIRE(kept_ >= 0);
    REQUIRE(dup2(elsewhere, descriptor_) == descriptor_);
    close(elsewhere);
  }
  ~Lack() {
    dup2(kept_, descriptor_);
    close(kept_);
  }
  Lack(Lack const&) = delete;
  Lack& operator=(Lack const&) = delete;

 private:
  int const descriptor_;
  int const kept_;
};

constexpr std::uint64_t large = 512 * mebi;

// Returns true if a block can be allocated and freed while another thread does `work`. `is_amid` tells from the size of
// the region's memory whether the work is under way; it must be so before and after. Retries if this thread was not
// scheduled in time.
template <class Work, class IsAmid>
bool others_are_served_during(Arena& arena, Work const& work, IsAmid const& is_amid) {
  bool is_served = false;
  for (int tries = 0; tries < 100 && !is_served; ++tries) {
    std::atomic<bool> is_done{false};
    std::thread other([&] {
      work();
      is_done = true;
    });
    while (!is_done && !is_served) {
      if (!is_amid(bytes_in_memory(arena.mapping()))) continue;
      auto const small = arena.allocate(100);
      bool const is_shared = arena.offset_of(*small).has_value();
      arena.free(small->data());
      is_served = is_shared && is_amid(bytes_in_memory(arena.mapping()));
    }
    other.join();
  }
  return is_served;
}

}  // namespace

TEST_CASE("while memory is made for a large block others allocate and free") {
  Arena arena(make_region(1024 * mebi));
  auto const small = allocated(arena, 100);
  auto const make = [&] { arena.free(allocated(arena, large).data()); };
  auto const is_amid = [](std::uint64_t bytes) { return bytes > large / 4 && bytes < large / 4 * 3; };
  CHECK(others_are_served_during(arena, make, is_amid));
  arena.free(small.data());
}

TEST_CASE("while a withdrawn block's memory is given back others allocate and free") {
  Arena arena(make_region(1024 * mebi));
  auto const small = allocated(arena, 100);
  auto const go = [&] {
    auto const block = allocated(arena, large);
    auto const withdrawn = arena.withdraw(block).value();
    arena.free(block.data());
    arena.readmit(withdrawn);
  };
  auto const is_amid = [](std::uint64_t bytes) { return bytes > large / 4 && bytes < large / 4 * 3; };
  CHECK(others_are_served_during(arena, go, is_amid));
  arena.free(small.data());
}

TEST_CASE("a reserved block takes no memory, and each part takes memory when it is prepared") {
  Arena arena(make_region(256 * mebi));
  auto const before = bytes_in_memory(arena.mapping());
  auto const block = arena.reserve(128 * mebi).value();
  CHECK_FALSE(block.is_prepared);
  CHECK(bytes_in_memory(arena.mapping()) == before);
  REQUIRE(arena.prepare(block.bytes.subspan(4 * mebi, 6 * mebi)).has_value());
  CHECK(bytes_in_memory(arena.mapping()) == before + 6 * mebi);
  fill(block.bytes.subspan(4 * mebi, 6 * mebi), 7);
  CHECK(all_are(as_seen_by(*opened(arena.ticket()), arena, block.bytes.subspan(4 * mebi, 6 * mebi)), 7));
  arena.free(block.bytes.data());
  CHECK(arena.used_bytes() == 0);
}

TEST_CASE("a block that was reserved in memory kept for reuse is prepared") {
  Arena arena(make_region(256 * mebi));
  arena.free(allocated(arena, 16 * mebi).data());
  auto const again = arena.reserve(16 * mebi).value();
  CHECK(again.is_prepared);
  arena.free(again.bytes.data());
  CHECK_FALSE(arena.reserve(64 * mebi).value().is_prepared);
}

TEST_CASE("several threads prepare one block, and blocks that share a unit") {
  Arena arena(make_region(256 * mebi));
  auto const beginning = allocated(arena, 2 * mebi - 4096);
  auto const large_block = arena.reserve(63 * mebi).value().bytes, small = arena.reserve(mebi / 2).value().bytes;
  REQUIRE(small.data() == large_block.data() + large_block.size());
  std::vector<std::thread> threads;
  for (std::uint64_t from = 0; from < large_block.size(); from += 8 * mebi)
    threads.emplace_back([&, from] {
      auto const part = large_block.subspan(from, std::min(8 * mebi, large_block.size() - from));
      if (arena.prepare(part).has_value()) fill(part, 7);
    });
  threads.emplace_back([&] {
    if (arena.prepare(small).has_value()) fill(small, 9);
  });
  for (auto& thread : threads) thread.join();
  CHECK(all_are(large_block, 7));
  CHECK(all_are(small, 9));
  arena.free(large_block.data());
  CHECK(all_are(small, 9));
  arena.free(small.data());
  auto const again = arena.reserve(mebi / 2).value();
  CHECK(again.bytes.data() == large_block.data());
  CHECK(again.is_prepared);
  arena.free(beginning.data());
}

TEST_CASE("if the system has no memory left a reserved block becomes private") {
  Arena arena(make_region());
  auto const block = arena.reserve(8 * mebi).value().bytes;
  REQUIRE(arena.prepare(block.first(4 * mebi)).has_value());
  fill(block.first(4 * mebi), 7);
  {
    Lack const lack(arena.mapping());
    REQUIRE(arena.prepare(block.subspan(4 * mebi)).has_value());
  }
  CHECK_FALSE(arena.offset_of(block).has_value());
  CHECK(all_are(block.first(4 * mebi), 7));
  fill(block.subspan(4 * mebi), 9);
  CHECK(all_are(block.subspan(4 * mebi), 9));
  auto* const place = block.data();
  arena.free(place);
  auto const again = allocated(arena, 8 * mebi);
  CHECK(again.data() == place);
  fill(again, 3);
  CHECK(all_are(as_seen_by(*opened(arena.ticket()), arena, again), 3));
}

TEST_CASE("memory that a block has returned because it became private is missing for the next block there") {
  Arena arena(make_region());
  auto const beginning = allocated(arena, 2 * mebi - 4096);
  auto const block = arena.reserve(17 * mebi).value().bytes;
  auto const neighbour = allocated(arena, mebi / 2);  // shares the block's last unit, which gets memory
  REQUIRE(neighbour.data() == block.data() + block.size());
  fill(neighbour, 9);
  full_from = 16 * mebi;  // memory is given in steps up to multiples of 16 MiB: the first one succeeds
  REQUIRE(arena.prepare(block).has_value());
  full_from = std::numeric_limits<off_t>::max();
  CHECK_FALSE(arena.offset_of(block).has_value());
  auto* const place = block.data();
  arena.free(place);
  auto const again = allocated(arena, 17 * mebi);
  CHECK(again.data() == place);
  auto const before = bytes_in_memory(arena.mapping());
  fill(again, 3);
  CHECK(bytes_in_memory(arena.mapping()) == before);  // nothing was missing: a full system would have raised SIGBUS
  CHECK(all_are(neighbour, 9));
  arena.free(beginning.data());
}

TEST_CASE("a small block is refused while the system has no memory, and the next one gets memory") {
  Arena arena(make_region());
  {
    Lack const lack(arena.mapping());
    CHECK(arena.allocate(100).has_error());
    CHECK(arena.allocate(4 * mebi).has_error());
  }
  fill(allocated(arena, 100), 7);
  fill(allocated(arena, 4 * mebi), 7);
}
