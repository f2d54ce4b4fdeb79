// Whatever a GPU does, every rank ends, with one error that names the rank, the device and the message of CUDA.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;
using devices::GpuErrc;

namespace {

FleetOptions on_gpus(std::uint32_t ranks, std::uint64_t seed = 1,
                     devices::GpuLimits limits = {.arena_bytes = 1 << 20}) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {seed, 5000, 2000};
  options.eager_bytes = 1024;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    options.gpus.push_back(std::make_shared<Double>(rank, limits, seed + rank));
  return options;
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t run = 1, std::uint64_t elements = 3000) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.segment_bytes = 1024;
  c.run = run;
  c.timeout = 1000ms;
  return c;
}

EngineErrc code_of(RunResult const& result) { return static_cast<EngineErrc>(result.status.error().code.value()); }

void check_all_blame(Collective const& collective, std::uint32_t ranks, plan::Rank culprit, std::string_view text) {
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    REQUIRE(collective.has_ended(rank));
    auto const& result = collective.result(rank);
    if (rank != culprit && result.status.has_value()) {  // this rank had all that it needed
      CHECK(collective.wrong(rank).empty());
      continue;
    }
    REQUIRE(result.status.has_error());
    CHECK_MESSAGE(mentions(result.status.error().detail, text), result.status.error().detail);
    CHECK(result.culprits == std::vector<plan::Rank>{culprit});
  }
}

std::vector<std::byte> memory_of(Double& gpu) {
  auto const all = gpu.gpu.behind(gpu.unit.arena_if_any()->bytes());  // works for a lost device too
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("whichever call of a device fails, every rank ends with its error, and nothing is written afterwards") {
  for (auto const how : {GpuErrc::failed, GpuErrc::lost})
    for (auto const* algorithm : {&algorithms::ring, &algorithms::tree, &algorithms::mesh}) {
      std::uint64_t failures = 0;
      for (std::int64_t n = 0;; n += 1 + n / 20) {
        auto options = on_gpus(3, static_cast<std::uint64_t>(n) + 1);
        auto const culprit = options.gpus[1];
        culprit->gpu.fail_after(n, how);
        LoopbackFleet fleet(std::move(options));
        Collective collective(fleet, case_of(*algorithm), fleet.now());
        collective.start();
        fleet.let_move();
        REQUIRE_MESSAGE(collective.ended() == 3, algorithm->name, " hangs when call ", n, " fails");
        if (!collective.result(1).status.has_error()) {
          CHECK(collective.wrong().empty());
          break;
        }
        ++failures;
        check_all_blame(collective, 3, 1, "rank 1 (w1): cuda:1: the double was told to fail");
        CHECK(culprit->unit.lost().has_value() == (how == GpuErrc::lost));
        auto const before = memory_of(*culprit);
        fleet.let_move();
        CHECK(memory_of(*culprit) == before);
        if (how == GpuErrc::lost) continue;
        Collective again(fleet, case_of(*algorithm, 2), fleet.now());
        REQUIRE(again.run());
        CHECK(again.wrong().empty());
      }
      CHECK(failures > 20);
    }
}

TEST_CASE("a run that begins on a lost device fails at once, everywhere") {
  auto options = on_gpus(2);
  auto const gpu = options.gpus[0];
  LoopbackFleet fleet(std::move(options));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  gpu->unit.saw(Error(GpuErrc::lost, "cuda:0: cudaErrorECCUncorrectable"));
  collective.start();
  fleet.let_move();
  check_all_blame(collective, 2, 0, "rank 0 (w0): cuda:0: cudaErrorECCUncorrectable");
}

TEST_CASE("a run that needs more pinned memory than there is says how much, and which flag limits it") {
  auto options = on_gpus(3, 1, {.arena_bytes = 32 << 20, .pinned_bytes = 1 << 20});
  auto const unit = options.gpus[2];
  LoopbackFleet fleet(std::move(options));
  auto const held = unit->unit.pinned().take();
  Collective collective(fleet, case_of(algorithms::ring, 1, 300000), fleet.now());
  collective.start();
  fleet.let_move();
  check_all_blame(collective, 3, 2, "--gpu-pinned-bytes allows 1048576");
}

TEST_CASE("where other runs have most of the pinned memory, a run uses smaller blocks, and comes through") {
  auto options = on_gpus(2, 1, {.arena_bytes = 96 << 20, .pinned_bytes = 128 << 20});
  auto const unit = options.gpus[1];
  LoopbackFleet fleet(std::move(options));
  std::vector<devices::PinnedSlot> held;
  for (int slot = 0; slot < 118; ++slot) held.push_back(unit->unit.pinned().take().value());
  Collective collective(fleet, case_of(algorithms::ring, 1, 8 << 20), fleet.now());  // 18 MiB, or 9
  REQUIRE(collective.run());
  CHECK(collective.wrong().empty());
}

TEST_CASE("where the device has little room, a run uses smaller blocks, and comes through") {
  // Two vectors of 32 MiB, and 10 or 5 MiB for received bytes.
  LoopbackFleet fleet(on_gpus(2, 1, {.arena_bytes = 70 << 20, .pinned_bytes = 128 << 20}));
  Collective collective(fleet, case_of(algorithms::ring, 1, 8 << 20), fleet.now());
  REQUIRE(collective.run());
  CHECK(collective.wrong().empty());
}

TEST_CASE("with one pinned slot for everything, a run still comes through") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    LoopbackFleet fleet(on_gpus(4, 1, {.arena_bytes = 32 << 20, .pinned_bytes = 1 << 20}));
    auto c = case_of(*algorithm, 1, 12000);
    c.segment_bytes = 4 << 10;
    Collective collective(fleet, c, fleet.now());
    REQUIRE_MESSAGE(collective.run(), algorithm->name);
    auto const wrong = collective.wrong();
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("a run that needs more memory of the device than there is says so, everywhere") {
  LoopbackFleet fleet(on_gpus(2, 1, {.arena_bytes = 30000}));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  collective.start();
  fleet.let_move();
  for (plan::Rank rank : {0u, 1u}) CHECK(mentions(collective.result(rank).status.error().detail, "of the arena's"));
}

TEST_CASE("at the deadline a device that hangs is named, and its memory is kept until it rests") {
  auto options = on_gpus(3);
  auto const hanging = options.gpus[1];
  LoopbackFleet fleet(std::move(options));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  hanging->gpu.hang();
  collective.start();
  fleet.let_move();
  fleet.pass(1000ms);
  fleet.let_move();
  for (plan::Rank rank : {0u, 2u}) {
    auto const& result = collective.result(rank);
    CHECK(code_of(result) == EngineErrc::deadline_exceeded);
    CHECK(mentions(result.status.error().detail, "rank 1 (w1): cuda:1 has done nothing of what was queued there"));
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
  CHECK(!collective.has_ended(1));
  hanging->gpu.go_on();
  fleet.let_move();
  REQUIRE(collective.has_ended(1));
  CHECK(collective.result(1).culprits == std::vector<plan::Rank>{1});
  CHECK(!hanging->unit.lost());
}

TEST_CASE("a device that never comes to rest is lost after ten seconds, and its run and its worker end") {
  auto options = on_gpus(2);
  auto const hanging = options.gpus[0];
  {
    LoopbackFleet fleet(std::move(options));
    Collective collective(fleet, case_of(algorithms::ring), fleet.now());
    hanging->gpu.hang();
    collective.start();
    fleet.let_move();
    fleet.pass(1000ms);
    fleet.let_move();
    CHECK(!collective.has_ended(0));
    fleet.pass(10'000ms);
    CHECK(collective.has_ended(0));
    CHECK(mentions(hanging->unit.lost().value(), "has not done for too long"));
  }
  CHECK_FALSE(hanging->unit.rests());
  hanging->gpu.go_on();
  while (!hanging->unit.rests()) {}
}

TEST_CASE("a run that is aborted at any moment ends everywhere, and nothing is written afterwards") {
  for (std::size_t steps = 0; steps < 200; steps += 3) {
    auto options = on_gpus(3, steps + 1);
    auto const gpus = options.gpus;
    LoopbackFleet fleet(std::move(options));
    Collective collective(fleet, case_of(algorithms::ring), fleet.now());
    collective.start();
    fleet.let_move(steps);
    fleet.engine(0).abort(1, Error(EngineErrc::aborted, "enough"));
    fleet.let_move();
    REQUIRE(collective.ended() == 3);
    if (!collective.result(0).status.has_error()) break;
    CHECK(mentions(collective.result(1).status.error().detail, "enough"));
    auto const before = memory_of(*gpus[2]);
    fleet.let_move();
    CHECK(memory_of(*gpus[2]) == before);
  }
}

TEST_CASE("a worker that stops lets its devices come to rest") {
  for (std::size_t steps = 5; steps < 100; steps += 7) {
    std::optional<Collective> collective;
    LoopbackFleet fleet(on_gpus(2, steps));
    collective.emplace(fleet, case_of(algorithms::ring), fleet.now());
    collective->start();
    fleet.let_move(steps);
    fleet.engine(1).shut_down();
    CHECK(collective->has_ended(1));
    fleet.let_move();
    CHECK(collective->has_ended(0));
  }
}
