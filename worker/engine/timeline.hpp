// When the instructions of one run could go on, moved their first bytes, and were done: for the flight recorder.
//
// A clock is read when an instruction is done and when a long one begins, never per segment; everything is sized in the
// constructor. A program with more than `steps_max` instructions is recorded by rounds, or by several rounds together.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/clock.hpp"

namespace chorus::engine {

inline constexpr std::int64_t never_ns = -1;

// One instruction, or those of neighbouring rounds together (`instructions` above 1). Times count from the start of the
// run: of several, the first that could go on or moved, and the last that was done, once all are.
struct FlightStep {
  std::uint32_t first = 0;  // number of the (first) instruction in the program
  std::uint32_t instructions = 1;
  std::uint32_t round = 0;
  plan::Opcode op = plan::Opcode::send;  // of one instruction
  plan::Rank peer = 0;
  std::uint32_t message = 0;
  std::uint32_t chunk = 0;  // first chunk written, of a send read
  std::uint32_t chunks = 0;
  std::uint64_t bytes = 0;
  std::int64_t ready_ns = never_ns;
  std::int64_t moved_ns = never_ns;
  std::int64_t done_ns = never_ns;
};

// How long, in seconds, a rank waited for peers in a run that ended `ended_ns` after its start, from its steps in
// order: time in which an instruction that could have gone on had not moved a byte, though those before it, to or from
// the same peer, were done. Moments at which several wait count once. Whoever waits least is the one that the others
// wait for.
[[nodiscard]] double waited_seconds(std::vector<FlightStep> const& steps, std::int64_t ended_ns);

class Timeline {
 public:
  static constexpr std::uint32_t steps_max = 256;

  // Both outlive the timeline.
  Timeline(plan::Program const& program, Clock& clock, Clock::TimePoint started);

  // As newly made.
  void begin(Clock::TimePoint started);

  // Of instruction i, each once: nothing that it depends on holds it back any more (at a moment that done() gave, or
  // now); some of its bytes have moved, but not all; it is done.
  void ready(std::uint32_t i, std::int64_t at_ns);
  void ready(std::uint32_t i);
  void moved(std::uint32_t i);
  std::int64_t done(std::uint32_t i);

  // What was noted until now was so at that moment, and is told later.
  void date_back(Clock::TimePoint to);

  [[nodiscard]] std::vector<FlightStep> steps(std::vector<std::uint64_t> const& instruction_bytes) const;

 private:
  struct Times {
    std::int64_t ready_ns = never_ns;
    std::int64_t moved_ns = never_ns;
    std::int64_t done_ns = never_ns;
    std::uint32_t done = 0;  // instructions
  };
  [[nodiscard]] bool is_aggregated() const { return !step_of_.empty(); }
  [[nodiscard]] Times& times(std::uint32_t i) { return times_[is_aggregated() ? step_of_[i] : i]; }
  [[nodiscard]] std::int64_t now_ns();

  plan::Program const& program_;
  Clock& clock_;
  Clock::TimePoint started_;
  std::vector<std::uint16_t> step_of_;  // by instruction, where several are one step
  std::vector<Times> times_;
};

}  // namespace chorus::engine
