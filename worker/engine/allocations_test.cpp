// How often a run allocates does not depend on its number of segments. In an executable of its own: it replaces the
// global operator new.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

namespace {

std::size_t allocations = 0;  // the test has one thread

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

std::size_t allocations_of(LoopbackFleet& fleet, plan::Algorithm const& algorithm, std::uint64_t segment_bytes,
                           std::uint64_t run) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = 40000;
  c.segment_bytes = segment_bytes;
  c.run = run;
  Collective collective(fleet, c, fleet.now());
  auto const before = allocations;
  REQUIRE(collective.run());
  auto const during = allocations - before;
  CHECK(collective.wrong().empty());
  return during;
}

}  // namespace

void check_allocations(Arenas const& arenas, Tensors tensors) {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    FleetOptions options;
    options.ranks = 4;
    options.network = {1, 200000, 200000};
    options.eager_bytes = 0;  // whether a stage is needed depends on timing
    options.arenas = arenas;
    options.tensors = tensors;
    LoopbackFleet fleet(options);
    static_cast<void>(allocations_of(fleet, *algorithm, 64, 1));  // dials, and grows what is kept
    static_cast<void>(allocations_of(fleet, *algorithm, 160000, 2));
    auto const few = allocations_of(fleet, *algorithm, 160000, 3);
    auto const many = allocations_of(fleet, *algorithm, 64, 4);
    CHECK_MESSAGE(few == many, algorithm->name);
    CHECK(few > 0);
  }
}

TEST_CASE("a small run like one before allocates no more than how it ended takes, whatever its plan") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    FleetOptions options;
    options.ranks = 4;
    LoopbackFleet fleet(options);
    std::array<std::shared_ptr<RunKind>, 4> kinds;
    Case c;
    c.algorithm = algorithm;
    c.elements = 64;
    Collective first(fleet, c, fleet.now());
    for (plan::Rank rank = 0; rank < 4; ++rank) kinds[rank] = std::make_shared<RunKind>(first.spec(rank));
    std::atomic<std::size_t> ended{0};
    auto const allocations_of_run = [&](std::uint64_t run) {
      auto const before = allocations;
      for (plan::Rank rank = 0; rank < 4; ++rank) {
        auto const& spec = first.spec(rank);
        fleet.engine(rank).start(kinds[rank], {run, spec.input, spec.output, spec.deadline},
                                 [&ended](RunResult const& result) { ended += result.status.has_value(); });
      }
      REQUIRE(fleet.run_until(ended, 4 * run));
      fleet.let_move();
      return allocations - before;
    };
    // Until everything has been as full as it gets: numbers of runs that have ended are kept up to a thousand.
    for (std::uint64_t run = 1; run <= 1100; ++run) static_cast<void>(allocations_of_run(run));
    CHECK_MESSAGE(allocations_of_run(1101) <= 4 * 2, algorithm->name);
  }
}

TEST_CASE("a run with a thousand times the segments allocates as often") { check_allocations({}, Tensors::elsewhere); }

TEST_CASE("and so it does through shared memory") {
  check_allocations(make_arenas(4), Tensors::in_arenas);
  check_allocations(make_arenas(4), Tensors::elsewhere);
}
