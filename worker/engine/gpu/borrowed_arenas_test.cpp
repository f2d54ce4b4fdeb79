// Mapping of peers' arenas, further attempts, and release.
#include "worker/engine/gpu/borrowed_arenas.hpp"

#include <doctest/doctest.h>

#include "worker/engine/testing/doubles.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using devices::GpuErrc;

namespace {

constexpr BorrowedArenas::TimePoint noon{12h};

// A peer's GPU, and the GPU here that reads its memory.
struct Neighbours {
  Neighbours() {
    auto const lent = lender.unit.lend(peer.incarnation).value();
    lend = {.handle = lent.handle, .bytes = lent.bytes, .proof_at = lent.proof_at};
    links::set_uuid(lend, lent.uuid);
  }
  [[nodiscard]] BorrowedArenas::Found find(BorrowedArenas::TimePoint now = noon) {
    return arenas.find(reader.unit, peer, lend, now);
  }

  Double lender{0, {.arena_bytes = 1 << 20}, 1}, reader{0, {.arena_bytes = 1 << 20}, 2};
  Identity const peer{"w1", 101};
  links::Lend lend;
  BorrowedArenas arenas;
};

}  // namespace

TEST_CASE("an arena is mapped once, and let go when its owner is forgotten and nobody reads it") {
  Neighbours host;
  auto first = host.find().arena;
  REQUIRE(first != nullptr);
  CHECK(host.find().arena == first);
  host.arenas.forget(host.peer);
  CHECK(host.reader.gpu.opened() == 1);
  first.reset();
  CHECK(host.reader.gpu.opened() == 0);
}

TEST_CASE("an arena that cannot be mapped for now is tried again after five seconds; one that never can be is not") {
  Neighbours host;
  host.reader.gpu.open_nothing("no room for it", GpuErrc::out_of_memory);
  CHECK(host.find().why_not == "cuda:0: no room for it");
  CHECK_FALSE(host.find().is_final);
  host.reader.gpu.open_nothing("");
  CHECK(host.find(noon + 4999ms).arena == nullptr);
  CHECK(host.find(noon + 5s).arena != nullptr);
  Neighbours other;
  other.reader.gpu.open_nothing("another container");
  CHECK(other.find().is_final);
  other.reader.gpu.open_nothing("");
  CHECK(other.find(noon + 1h).why_not == "cuda:0: another container");
}

TEST_CASE("a device that is too busy to read the proof is not waited for, and not given up") {
  Neighbours host;
  host.reader.gpu.hang();
  CHECK(host.find().why_not == "its GPU has not come to reading the proof yet");
  CHECK_FALSE(host.find().is_final);
  host.reader.gpu.go_on();
  CHECK(host.find().arena != nullptr);
  CHECK(!host.reader.unit.lost());
}

TEST_CASE("an arena that is forgotten while its proof is being read is released when the device has done that") {
  Neighbours host;
  host.reader.gpu.hang();
  CHECK(host.find().arena == nullptr);
  host.arenas.forget(host.peer);
  CHECK(host.reader.gpu.opened() == 1);
  host.reader.gpu.go_on();
  host.arenas.forget(host.peer);
  CHECK(host.reader.gpu.opened() == 0);
}

TEST_CASE("a peer that lends impossible arenas, again and again, fills nothing") {
  Neighbours host;
  REQUIRE(host.find().arena != nullptr);
  for (std::uint64_t n = 1; n < 1000; ++n) {
    auto wrong = host.lend;
    wrong.bytes += 4096 * n;
    CHECK(host.arenas.find(host.reader.unit, host.peer, wrong, noon).is_final);
  }
  CHECK(host.find().arena != nullptr);
  CHECK(host.reader.gpu.opened() == 1);
}
