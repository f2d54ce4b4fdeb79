// Existing memory of a program that is registered with an arena.
#include "worker/memory/registered_memory.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/mentions.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;
using chorus::testing::mentions;

namespace {

constexpr std::size_t page = 4096, size = 5 * page;

// Anonymous pages of the process's own, filled with 3.
class Pages {
 public:
  explicit Pages(std::size_t bytes = size)
      : bytes_(
            static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
            bytes) {
    fill(bytes_, 3);
  }
  ~Pages() { munmap(bytes_.data(), bytes_.size()); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool all_are(int value) const {
    return std::all_of(bytes_.begin(), bytes_.end(), [&](auto b) { return b == std::byte(value); });
  }

 private:
  std::span<std::byte> bytes_;
};

struct Sharing {
  std::shared_ptr<Arena> arena = std::make_shared<Arena>(make_region());
  std::shared_ptr<PeerRegion const> peer = PeerRegion::open(arena->ticket()).value();
  [[nodiscard]] std::span<std::byte> there(std::span<std::byte const> bytes) const {
    return as_seen_by(*peer, *arena, bytes);
  }
};

}  // namespace

TEST_CASE("registered memory keeps address and contents, and other processes read and write it") {
  Sharing sharing;
  Pages const pages;
  auto const registered = RegisteredMemory::make(sharing.arena, pages.bytes()).value();
  CHECK(pages.all_are(3));
  auto const there = sharing.there(pages.bytes());
  CHECK(std::equal(there.begin(), there.end(), pages.bytes().begin()));
  fill(there, 4);
  CHECK(pages.all_are(4));
  auto const part = pages.bytes().subspan(100, 2 * page);
  fill(part, 5);
  CHECK(sharing.there(part)[0] == std::byte{5});
  CHECK(sharing.arena->has_own_pages(part));
  CHECK_FALSE(sharing.arena->offset_of({pages.bytes().data(), size + 1}).has_value());
}

TEST_CASE("when the registration ends the contents stay, and other processes no longer reach them") {
  Sharing sharing;
  Pages const pages;
  auto const before = sharing.arena->used_bytes();
  auto registered = RegisteredMemory::make(sharing.arena, pages.bytes()).value();
  auto const there = sharing.there(pages.bytes());
  fill(there, 6);
  registered.reset();
  CHECK(pages.all_are(6));
  CHECK(sharing.arena->used_bytes() == before);
  CHECK_FALSE(sharing.arena->offset_of(pages.bytes()).has_value());
  fill(there, 7);
  CHECK(pages.all_are(6));
  CHECK(RegisteredMemory::make(sharing.arena, pages.bytes()).has_value());
}

TEST_CASE("registered memory that was withdrawn keeps its contents, and its place is not used meanwhile") {
  Sharing sharing;
  Pages const pages;
  auto registered = RegisteredMemory::make(sharing.arena, pages.bytes()).value();
  auto const there = sharing.there(pages.bytes());
  auto const withdrawn = sharing.arena->withdraw(pages.bytes().first(2 * page)).value();
  fill(there.first(2 * page), 8);
  CHECK(pages.all_are(3));
  CHECK_FALSE(sharing.arena->offset_of(pages.bytes()).has_value());
  registered.reset();
  CHECK(pages.all_are(3));
  fill(allocated(*sharing.arena, size), 9);
  CHECK(there[0] != std::byte{9});
  sharing.arena->readmit(withdrawn);
}

TEST_CASE("memory that cannot be registered is refused and stays unchanged") {
  Sharing sharing;
  Pages const pages;
  auto const why = [&](std::span<std::byte> bytes) {
    auto const made = RegisteredMemory::make(sharing.arena, bytes);
    REQUIRE(made.has_error());
    CHECK(made.error().code == MemoryErrc::out_of_range);
    return made.error().detail;
  };
  CHECK(mentions(why({}), "not whole pages"));
  CHECK(mentions(why(pages.bytes().subspan(1)), "not whole pages"));
  CHECK(mentions(why(pages.bytes().first(page + 1)), "not whole pages"));
  mprotect(pages.bytes().data() + page, page, PROT_READ);
  CHECK(mentions(why(pages.bytes()), "r--p"));
  munmap(pages.bytes().data() + page, page);
  CHECK(mentions(why(pages.bytes()), "no memory"));
  auto const first = pages.bytes().first(page);
  auto const registered = RegisteredMemory::make(sharing.arena, first).value();
  CHECK(mentions(why(first), "rw-s"));
  auto* const at = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(&sharing) / page * page);
  CHECK(mentions(why({at, page}), "stack"));
}

TEST_CASE("a full arena registers nothing, and the memory stays unchanged") {
  auto const arena = std::make_shared<Arena>(make_region(4 * mebi));
  Pages const pages(8 * mebi);
  auto const made = RegisteredMemory::make(arena, pages.bytes());
  REQUIRE(made.has_error());
  CHECK(made.error().code == MemoryErrc::unavailable);
  CHECK(pages.all_are(3));
}

TEST_CASE("registered memory whose file is truncated is an error, not a crash") {
  Sharing sharing;
  Pages const pages;
  auto const registered = RegisteredMemory::make(sharing.arena, pages.bytes()).value();
  REQUIRE(ftruncate(sharing.arena->mapping().descriptor(), page) == 0);
  CHECK(pages.bytes()[0] == std::byte{0});
  CHECK(sharing.arena->mapping().is_broken());
}
