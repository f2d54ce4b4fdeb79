// Memory that peers read in place: whichever rank fails, no rank reads memory that was returned, and none waits for
// ever.
#include <doctest/doctest.h>

#include <functional>

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

FleetOptions on_one_gpu(std::uint32_t ranks, std::uint64_t seed = 1) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {seed, 5000, 2000};
  options.eager_bytes = 1024;
  options.lends_gpu_memory = true;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    options.gpus.push_back(std::make_shared<Double>(0, devices::GpuLimits{.arena_bytes = 1 << 20}, seed + rank));
  return options;
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t run = 1, std::uint64_t elements = 3000) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.segment_bytes = 64;
  c.run = run;
  c.timeout = 1000ms;
  return c;
}

std::vector<std::byte> memory_of(Double& gpu) {
  auto const all = gpu.gpu.behind(gpu.unit.arena_if_any()->bytes());
  return {all.begin(), all.end()};
}

void check_right_or_failed(Collective const& collective, plan::Rank rank) {
  REQUIRE(collective.has_ended(rank));
  if (collective.result(rank).status.has_value()) CHECK(collective.wrong(rank).empty());
}

// Rank 1 has borrowed from rank 0 and hangs before it has read.
struct HangingReader {
  explicit HangingReader(FleetOptions options = on_one_gpu(2)) : gpus(options.gpus), fleet(std::move(options)) {
    Collective first(fleet, case_of(algorithms::ring), fleet.now());
    REQUIRE(first.run());  // everything that is mapped and proved once, is so now
    gpus[1]->gpu.hang();
    collective.emplace(fleet, case_of(algorithms::ring, 2), fleet.now());
    collective->start();
    fleet.let_move();
    REQUIRE(collective->ended() == 0);
  }

  void give_up() {
    fleet.engine(0).abort(2, Error(EngineErrc::aborted, "enough"));
    fleet.let_move();
  }

  Doubles gpus;
  LoopbackFleet fleet;
  std::optional<Collective> collective;
};

}  // namespace

TEST_CASE("in place, whichever call of a device fails, every rank ends, and nothing is written afterwards") {
  // Rank 0 does nearly all the work of the tree; rank 1 its part of the other algorithms.
  struct Failing {
    plan::Algorithm const* algorithm;
    plan::Rank rank;
  };
  for (auto const how : {GpuErrc::failed, GpuErrc::lost})
    for (auto const& [algorithm, fails] : {Failing{&algorithms::ring, 1}, Failing{&algorithms::tree, 0},
                                           Failing{&algorithms::centralized, 0}, Failing{&algorithms::mesh, 1}}) {
      auto const name = "rank " + std::to_string(fails) + " (w" + std::to_string(fails) + ")";
      std::uint64_t failures = 0;
      for (std::int64_t n = 0;; n += 1 + n / 20) {
        auto options = on_one_gpu(3, static_cast<std::uint64_t>(n) + 1);
        auto const gpus = options.gpus;
        gpus[fails]->gpu.fail_after(n, how);
        LoopbackFleet fleet(std::move(options));
        Collective collective(fleet, case_of(*algorithm), fleet.now());
        collective.start();
        fleet.let_move();
        REQUIRE_MESSAGE(collective.ended() == 3, algorithm->name, " hangs when call ", n, " fails");
        for (plan::Rank rank = 0; rank < 3; ++rank) check_right_or_failed(collective, rank);
        auto const& result = collective.result(fails);
        if (result.status.has_error()) {
          CHECK(mentions(result.status.error().detail, name + ": cuda:0: the double was told to fail"));
          CHECK(result.culprits == std::vector<plan::Rank>{fails});
        }
        auto const use = result.trace ? result.trace->gpu : devices::GpuUse{};
        bool const was_staged = use.in_bytes + use.out_bytes != 0;  // the failure was in the agreement
        auto const before = memory_of(*gpus[2]);
        fleet.let_move();
        CHECK(memory_of(*gpus[2]) == before);
        if (result.status.has_value() && !was_staged) break;
        ++failures;
        if (how == GpuErrc::lost) continue;
        Collective again(fleet, case_of(*algorithm, 2), fleet.now());
        REQUIRE(again.run());
        CHECK(again.wrong().empty());
      }
      CHECK(failures > 20);
    }
}

TEST_CASE("in place, a run that is aborted at any moment ends everywhere, and nothing is written afterwards") {
  for (std::size_t steps = 0; steps < 400; steps += 3) {
    auto options = on_one_gpu(3, steps + 1);
    auto const gpus = options.gpus;
    LoopbackFleet fleet(std::move(options));
    Collective collective(fleet, case_of(algorithms::ring), fleet.now());
    collective.start();
    fleet.let_move(steps);
    fleet.engine(0).abort(1, Error(EngineErrc::aborted, "enough"));
    fleet.let_move();
    REQUIRE(collective.ended() == 3);
    for (plan::Rank rank = 0; rank < 3; ++rank) check_right_or_failed(collective, rank);
    if (!collective.result(0).status.has_error()) break;
    auto const before = memory_of(*gpus[2]);
    fleet.let_move();
    CHECK(memory_of(*gpus[2]) == before);
  }
}

namespace {

// Rank 1 sends little, which is soon read; most of its memory is written to.
struct WrittenTo {
  explicit WrittenTo(std::uint64_t seed) : WrittenTo(on_one_gpu(2, seed)) {}
  explicit WrittenTo(FleetOptions options) : gpus(options.gpus), fleet(std::move(options)) {
    Collective first(fleet, gather(1), fleet.now());
    REQUIRE(first.run());
    collective.emplace(fleet, gather(2), fleet.now());
    collective->start();
  }
  static Case gather(std::uint64_t run) {
    auto c = case_of(algorithms::ring, run);
    c.op = Op::all_gather;
    c.counts = {2980, 20};
    return c;
  }
  [[nodiscard]] std::vector<std::byte> memory() const { return memory_of(*gpus[1]); }

  // Lets the run end; no rank may write afterwards.
  void check_end() {
    while (!collective->has_ended(1)) fleet.let_move(1);
    auto const at_end = memory();
    fleet.let_move();
    CHECK(memory() == at_end);
  }

  Doubles gpus;
  LoopbackFleet fleet;
  std::optional<Collective> collective;
};

void at_every_moment(std::function<void(WrittenTo& story)> const& tell) {
  for (std::size_t steps = 0; steps < 400; ++steps) {
    WrittenTo story(steps + 1);
    story.fleet.let_move(steps);
    if (story.collective->has_ended(1)) break;
    tell(story);
  }
}

}  // namespace

TEST_CASE("everything that a peer writes has arrived before the run ends, however it ends, and nothing afterwards") {
  std::size_t written = 0;
  at_every_moment([&written](WrittenTo& story) {
    auto const at_abort = story.memory();
    story.fleet.engine(1).abort(2, Error(EngineErrc::aborted, "enough"));
    story.check_end();
    written += story.memory() != at_abort;
  });
  CHECK(written > 0);
}

TEST_CASE(
    "a rank that is written to, and loses a link, ends when no rank writes there any more; and so does its writer") {
  std::size_t failed = 0;
  for (plan::Rank const from : {0u, 1u})
    at_every_moment([&failed, from](WrittenTo& story) {
      story.fleet.cut(from, 1 - from);
      story.fleet.let_move();
      story.fleet.pass(1000ms);
      story.check_end();
      for (plan::Rank const rank : {0u, 1u}) check_right_or_failed(*story.collective, rank);
      failed += story.collective->result(1).status.has_error();
    });
  CHECK(failed > 20);
}

TEST_CASE("a writer that stood still for long writes nothing that it is asked to write afterwards") {
  std::size_t stood_still = 0;
  at_every_moment([&stood_still](WrittenTo& story) {
    // A real device finishes the work that it has.
    if (story.fleet.engine(0).awaits_devices()) return;
    story.fleet.stop(0);
    story.fleet.let_move();
    story.fleet.pass(20'000ms);
    story.fleet.let_move();
    auto const at_end = story.memory();
    story.fleet.go_on(0);
    story.fleet.let_move();
    CHECK(story.memory() == at_end);
    ++stood_still;
  });
  CHECK(stood_still > 20);
}

TEST_CASE("in place, a rank that dies at any moment is survived, a second later at the latest") {
  for (auto const* algorithm : {&algorithms::ring, &algorithms::centralized})
    for (std::size_t steps = 3; steps < 400; steps += 5) {
      LoopbackFleet fleet(on_one_gpu(3, steps));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      fleet.let_move(steps);
      if (collective.ended() != 0) break;
      fleet.kill(algorithm == &algorithms::ring ? 1 : 0);
      fleet.let_move();
      fleet.pass(1000ms);
      fleet.let_move();
      for (plan::Rank const rank : {algorithm == &algorithms::ring ? 0u : 1u, 2u})
        check_right_or_failed(collective, rank);
    }
}

TEST_CASE("a worker that stops while peers read its memory ends, and so do they") {
  for (std::size_t steps = 5; steps < 200; steps += 7) {
    std::optional<Collective> collective;
    LoopbackFleet fleet(on_one_gpu(2, steps));
    collective.emplace(fleet, case_of(algorithms::ring), fleet.now());
    collective->start();
    fleet.let_move(steps);
    fleet.engine(1).shut_down();
    CHECK(collective->has_ended(1));
    fleet.let_move();
    fleet.pass(1000ms);
    fleet.let_move();
    CHECK(collective->has_ended(0));
  }
}

TEST_CASE("memory that a peer may still read is held until the peer says that it reads no more") {
  HangingReader story;
  story.give_up();
  CHECK(story.collective->ended() == 0);
  story.gpus[1]->gpu.go_on();
  story.fleet.let_move();
  CHECK(story.collective->ended() == 2);
  CHECK(mentions(story.collective->result(1).status.error().detail, "enough"));
  CHECK(!story.gpus[0]->unit.lost());
}

TEST_CASE("memory that a peer may still read is held for ten seconds, and kept beyond the end of the run") {
  HangingReader story;
  story.give_up();
  auto& lender = *story.gpus[0];
  story.fleet.pass(10'000ms);
  story.fleet.let_move();
  REQUIRE(story.collective->ended() == 2);
  CHECK(!lender.unit.lost());
  CHECK(story.gpus[1]->unit.lost());
  story.collective.reset();
  auto const held = lender.unit.arena_if_any()->used_bytes();
  CHECK(held > 2 * 3000 * sizeof(float));
  story.gpus[1]->gpu.go_on();
  story.fleet.let_move();
  CHECK(lender.unit.arena_if_any()->used_bytes() < held);
}

TEST_CASE("a reader that returns memory late, thousands of runs later, returns it all the same, and its link goes on") {
  HangingReader story;
  story.give_up();
  story.fleet.pass(10'000ms);
  story.fleet.let_move();
  story.collective.reset();
  auto const held = story.gpus[0]->unit.arena_if_any()->used_bytes();
  auto const links = story.fleet.engine(0).links();
  for (std::uint64_t run = 100; run < 1200; ++run)  // more than an engine remembers
    story.fleet.engine(0).abort(run, Error(EngineErrc::aborted, "never mind"));
  story.gpus[1]->gpu.go_on();
  story.fleet.let_move();
  CHECK(story.gpus[0]->unit.arena_if_any()->used_bytes() < held);
  CHECK(story.fleet.engine(0).links() == links);
}

TEST_CASE("when a reader ends its link, its lender holds the memory for one more second") {
  HangingReader story;
  story.give_up();
  story.fleet.kill(1);
  story.fleet.let_move();
  CHECK(!story.collective->has_ended(0));
  story.fleet.pass(1000ms);
  story.fleet.let_move();
  CHECK(story.collective->has_ended(0));
  story.gpus[1]->gpu.go_on();
}

TEST_CASE("when the lender ends the link itself, it holds the memory for ten seconds: the reader may stand still") {
  HangingReader story;
  story.fleet.engine(0).fence("w1", 999);
  story.fleet.let_move();
  story.fleet.pass(9'000ms);
  story.fleet.let_move();
  CHECK(!story.collective->has_ended(0));
  story.fleet.pass(1'000ms);
  story.fleet.let_move();
  CHECK(story.collective->has_ended(0));
  story.gpus[1]->gpu.go_on();
}

TEST_CASE("a process that stood still while it read in place uses nothing that it reads there afterwards") {
  HangingReader story;
  for (plan::Rank rank : {0u, 1u}) story.fleet.stop(rank);
  story.fleet.pass(7'000ms);
  story.gpus[1]->gpu.go_on();
  for (plan::Rank rank : {0u, 1u}) story.fleet.go_on(rank);
  story.fleet.let_move();
  REQUIRE(story.collective->ended() == 2);
  for (plan::Rank rank : {0u, 1u})
    CHECK(mentions(story.collective->result(rank).status.error().detail, ") stood still for "));
}

TEST_CASE("a worker that stops tells its readers, and goes when they have given back what they borrowed") {
  HangingReader story;
  auto& lender = story.fleet.engine(0);
  story.gpus[0]->gpu.hang();  // the lender's GPU has unfinished work of its own
  lender.stop();
  CHECK(lender.has_lent());
  story.gpus[0]->gpu.go_on();
  story.fleet.let_move();
  CHECK(lender.has_lent());
  story.gpus[1]->gpu.go_on();
  story.fleet.let_move();
  CHECK_FALSE(lender.has_lent());
  CHECK(story.collective->ended() == 2);
  CHECK(mentions(story.collective->result(1).status.error().detail, "w0 stops"));
}
