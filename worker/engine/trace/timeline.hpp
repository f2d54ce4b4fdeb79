// Times at which the instructions of one run became ready, moved their first bytes and were done, for the flight
// recorder.
//
// The clock is read when an instruction is done and when a long one begins, never per segment; the constructor
// allocates everything. A program with more than `steps_max` instructions is recorded by rounds, or by several rounds
// together.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/trace/clock.hpp"

namespace chorus::engine {

inline constexpr std::int64_t never_ns = -1;

// One instruction, or those of neighbouring rounds together (`instructions` above 1). Times count from the start of the
// run. For several instructions: the earliest ready and moved, and the latest done, once all are done.
struct FlightStep {
  std::uint32_t first = 0;  // number of the first instruction in the program
  std::uint32_t instructions = 1;
  std::uint32_t round = 0;
  plan::Opcode op = plan::Opcode::send;  // this and the next two: for a single instruction
  plan::Rank peer = 0;
  std::uint32_t message = 0;
  std::uint32_t chunk = 0;  // first chunk written; first chunk read for a send
  std::uint32_t chunks = 0;
  std::uint64_t bytes = 0;
  std::int64_t ready_ns = never_ns;
  std::int64_t moved_ns = never_ns;
  std::int64_t done_ns = never_ns;
};

// Seconds that a rank waited for peers in a run that ended `ended_ns` after its start, from its steps in order. A step
// waits while it is ready and has not moved a byte, and all earlier steps with the same peer are done. Moments in which
// several steps wait count once. The rank that waits least is the one that the others wait for.
[[nodiscard]] double waited_seconds(std::vector<FlightStep> const& steps, std::int64_t ended_ns);

class Timeline {
 public:
  static constexpr std::uint32_t steps_max = 256;

  // Program and clock outlive the timeline.
  Timeline(plan::Program const& program, Clock& clock, Clock::TimePoint started);

  // Resets the timeline for the next run.
  void begin(Clock::TimePoint started);

  // Events of instruction i, each reported once. ready: all dependencies are done, at a time that done() returned, or
  // now. moved: the first bytes have moved, but not all. done: all bytes have moved.
  void ready(std::uint32_t i, std::int64_t at_ns);
  void ready(std::uint32_t i);
  void moved(std::uint32_t i);
  std::int64_t done(std::uint32_t i);

  // Moves everything noted so far to the time `to`, at which it really happened.
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
  std::vector<std::uint16_t> step_of_;  // step by instruction; empty unless steps are aggregated
  std::vector<Times> times_;
};

}  // namespace chorus::engine
