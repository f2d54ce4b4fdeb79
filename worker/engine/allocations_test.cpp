// The number of allocations of a run does not depend on its number of segments. An executable of its own, because it
// counts all allocations of the process.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"
#include "worker/memory/pages/errc.hpp"

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> locks{0};

}  // namespace

extern "C" {

// glibc's own functions, which the ones below replace; operator new uses those, too.
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> real{nullptr};
  if (real == nullptr) real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real.load()(mutex);
}

}  // extern "C"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;

namespace {

struct Cost {
  std::size_t allocations = 0;
  std::size_t locks = 0;
};

Cost cost_of(Fleet& fleet, plan::Algorithm const& algorithm, std::uint64_t segment_bytes, std::uint64_t run,
             std::uint64_t elements = 40000) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.segment_bytes = segment_bytes;
  c.run = run;
  Collective collective(fleet, c, fleet.now());
  Cost const before{allocations, locks};
  REQUIRE(collective.run());
  Cost const during{allocations - before.allocations, locks - before.locks};
  CHECK(collective.wrong().empty());
  return during;
}

}  // namespace

void check_allocations(Arenas const& arenas, Tensors tensors) {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    FleetOptions options;
    options.ranks = 4;
    options.network = {1, 200000, 200000};
    options.eager_bytes = 0;  // whether a stage is needed would depend on timing
    options.arenas = arenas;
    options.tensors = tensors;
    LoopbackFleet fleet(options);
    static_cast<void>(cost_of(fleet, *algorithm, 64, 1));  // dials, and grows what is kept
    static_cast<void>(cost_of(fleet, *algorithm, 160000, 2));
    auto const few = cost_of(fleet, *algorithm, 160000, 3);
    auto const many = cost_of(fleet, *algorithm, 64, 4);
    CHECK_MESSAGE(few.allocations == many.allocations, algorithm->name);
    CHECK_MESSAGE(few.locks >= many.locks, algorithm->name);
    CHECK(few.allocations > 0);
  }
}

TEST_CASE("a small run of a known kind allocates no more than the result of its end takes, whatever its plan") {
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
      auto const before = allocations.load();
      for (plan::Rank rank = 0; rank < 4; ++rank) {
        auto const& spec = first.spec(rank);
        fleet.engine(rank).start(kinds[rank], {run, spec.input, spec.output, spec.deadline},
                                 [&ended](RunResult const& result) { ended += result.status.has_value(); });
      }
      REQUIRE(fleet.run_until(ended, 4 * run));
      fleet.let_move();
      return allocations - before;
    };
    // Until every container has its full size: up to a thousand ended runs are remembered.
    for (std::uint64_t run = 1; run <= 1100; ++run) static_cast<void>(allocations_of_run(run));
    CHECK_MESSAGE(allocations_of_run(1101) <= 4 * 2, algorithm->name);
  }
}

// A rank of a scatter keeps the blocks that it passes on, however large the others' are.
TEST_CASE("a run for which there is no memory ends here and at its peers, and the worker goes on") {
  FleetOptions options;
  options.ranks = 4;
  LoopbackFleet fleet(options);
  Case c;
  c.algorithm = &algorithms::binomial;
  c.op = Op::scatter;
  c.dtype = Dtype::u8;
  c.counts = {8, 8, 8, 8};
  Collective collective(fleet, c, fleet.now());
  collective.spec(2).sizes.counts[3] = std::uint64_t{1} << 60;
  collective.start();
  REQUIRE(collective.finish());
  auto const& refused = collective.result(2);
  REQUIRE(refused.status.has_error());
  CHECK(refused.status.error().code == memory::MemoryErrc::unavailable);
  CHECK(mentions(refused.status.error().detail, "rank 2 (w2): no memory for "));
  CHECK(refused.culprits == std::vector<plan::Rank>{2});
  for (plan::Rank const rank : {0u, 3u}) {
    REQUIRE(collective.result(rank).status.has_error());
    CHECK(mentions(collective.result(rank).status.error().detail, "rank 2 (w2): no memory for "));
    CHECK(collective.result(rank).culprits == std::vector<plan::Rank>{2});
  }
  c.run = 2;
  Collective next(fleet, c, fleet.now());
  REQUIRE(next.run());
  CHECK(next.wrong().empty());
}

TEST_CASE("a run with a thousand times the segments allocates as often") { check_allocations({}, Tensors::elsewhere); }

TEST_CASE("and so it does through shared memory") {
  check_allocations(make_arenas(4), Tensors::in_arenas);
  check_allocations(make_arenas(4), Tensors::elsewhere);
}

TEST_CASE("over sockets neither a segment, nor a wait for room, nor a turn allocates") {
  constexpr std::uint64_t elements = 6u << 20;  // more than sockets hold, and than a link moves in a turn
  for (auto const* algorithm : {&algorithms::mesh, &algorithms::ring}) {
    DataPlaneOptions options;
    options.eager_bytes = 0;
    options.inquiry = std::chrono::hours(1);  // asks allocate
    TcpFleet fleet(2, options);
    std::uint64_t run = 0;
    auto const allocations_of = [&](std::uint64_t segment_bytes) {
      return cost_of(fleet, *algorithm, segment_bytes, ++run, elements).allocations;
    };
    static_cast<void>(allocations_of(16u << 10));  // dials, and grows what is kept
    static_cast<void>(allocations_of(4u << 20));
    // A few allocations depend on which rank begins first, and on what waits at the other rank until then.
    constexpr std::size_t few = 8;
    for (int i = 0; i < 5; ++i)
      CHECK_MESSAGE(allocations_of(16u << 10) < allocations_of(4u << 20) + few, algorithm->name);
  }
}
