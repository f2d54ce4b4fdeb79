#include "worker/engine/trace/timeline.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/program/scoreboard.hpp"

using namespace chorus;
using namespace chorus::engine;

namespace {

struct TestClock final : Clock {
  TimePoint now() override {
    ++readings;
    return at;
  }
  void pass(std::chrono::nanoseconds time) { at += time; }
  TimePoint at{std::chrono::hours(1)};
  int readings = 0;
};

plan::Program ring_of(std::uint32_t ranks) {
  return plan::build(algorithms::ring, {.op = Op::all_reduce, .algorithm = "ring", .ranks = ranks}, 0).value();
}

// A program that runs to its end in order, each instruction in this many pieces, one nanosecond per piece.
void run(plan::Program const& program, Timeline& timeline, TestClock& clock, std::uint64_t pieces) {
  Scoreboard board(program, std::vector<std::uint64_t>(program.instructions.size(), pieces), {}, &timeline);
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      clock.pass(std::chrono::nanoseconds(1));
      board.advance(i, 1);
    }
  CHECK(board.finished());
}

}  // namespace

TEST_CASE("an instruction is ready, moves and is done in this order, and not before what it depends on") {
  auto const program = ring_of(4);
  TestClock clock;
  Timeline timeline(program, clock, clock.at);
  run(program, timeline, clock, 3);
  auto const steps = timeline.steps(std::vector<std::uint64_t>(program.instructions.size(), 3));
  REQUIRE(steps.size() == program.instructions.size());
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    auto const& step = steps[i];
    CHECK(step.first == i);
    CHECK(step.instructions == 1);
    CHECK(step.bytes == 3);
    CHECK(step.peer == program.instructions[i].peer);
    CHECK(step.ready_ns >= 0);
    CHECK(step.ready_ns <= step.moved_ns);
    CHECK(step.moved_ns == 3 * i + 1);
    CHECK(step.done_ns == 3 * i + 3);
    for (auto const& dependency : program.dependencies_of(i))
      if (!dependency.segmentwise) CHECK(step.ready_ns >= steps[dependency.instruction].done_ns);
  }
}

TEST_CASE("the clock is read as often for a thousand segments as for two") {
  auto const program = ring_of(4);
  auto const readings = [&program](std::uint64_t pieces) {
    TestClock clock;
    Timeline timeline(program, clock, clock.at);
    run(program, timeline, clock, pieces);
    return clock.readings;
  };
  CHECK(readings(2) == readings(1000));
  CHECK(readings(1) <= static_cast<int>(program.instructions.size()));
}

TEST_CASE("a program with more instructions than the limit is recorded by rounds, with every byte") {
  auto const program = ring_of(200);  // 796 instructions, 398 rounds
  REQUIRE(program.instructions.size() > Timeline::steps_max);
  TestClock clock;
  Timeline timeline(program, clock, clock.at);
  run(program, timeline, clock, 1);
  auto const steps = timeline.steps(std::vector<std::uint64_t>(program.instructions.size(), 1));
  CHECK(steps.size() == Timeline::steps_max);
  std::uint32_t instructions = 0;
  std::uint64_t bytes = 0;
  for (auto const& step : steps) {
    CHECK(step.instructions >= 1);
    CHECK(step.first == instructions);
    CHECK(step.done_ns >= step.moved_ns);
    instructions += step.instructions;
    bytes += step.bytes;
  }
  CHECK(instructions == program.instructions.size());
  CHECK(bytes == program.instructions.size());
}

TEST_CASE("instructions that a run did not finish have no end") {
  auto const program = ring_of(4);
  TestClock clock;
  Timeline timeline(program, clock, clock.at);
  Scoreboard board(program, std::vector<std::uint64_t>(program.instructions.size(), 2), {}, &timeline);
  board.advance(0, 1);
  auto const steps = timeline.steps(board.totals());
  CHECK(steps[0].moved_ns == 0);
  CHECK(steps[0].done_ns == never_ns);
  CHECK(steps.back().ready_ns == never_ns);
}

TEST_CASE("a rank waits while an instruction could go on and has not moved, each moment once") {
  auto const step = [](std::uint32_t first, plan::Opcode op, plan::Rank peer, std::int64_t ready, std::int64_t moved,
                       std::int64_t done) {
    FlightStep one{.first = first, .op = op, .peer = peer};
    one.ready_ns = ready, one.moved_ns = moved, one.done_ns = done;
    return one;
  };
  using plan::Opcode;
  CHECK(waited_seconds({}, 100) == 0);
  CHECK(waited_seconds({step(0, Opcode::reduce, 0, 0, 50, 60)}, 100) == 0);
  CHECK(waited_seconds({step(0, Opcode::recv, 1, 10, 40, 60)}, 100) == 30 * 1e-9);
  // Two peers at the same time, and with a gap.
  CHECK(waited_seconds({step(0, Opcode::recv, 1, 0, 40, 60), step(1, Opcode::recv, 2, 20, 50, 60)}, 100) == 50 * 1e-9);
  CHECK(waited_seconds({step(0, Opcode::recv, 1, 0, 10, 60), step(1, Opcode::send, 2, 20, 50, 60)}, 100) == 40 * 1e-9);
  // A message behind another one of the same peer waits only from that one's end.
  CHECK(waited_seconds({step(0, Opcode::recv, 1, 0, 10, 60), step(1, Opcode::recv_reduce, 1, 0, 70, 80)}, 100) ==
        20 * 1e-9);
  // A run that ended early: waits count until its end.
  CHECK(waited_seconds({step(0, Opcode::recv, 1, 30, never_ns, never_ns)}, 100) == 70 * 1e-9);
  CHECK(waited_seconds({step(0, Opcode::recv, 1, never_ns, never_ns, never_ns)}, 100) == 0);
}
