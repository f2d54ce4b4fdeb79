#include "worker/engine/timeline.hpp"

#include <algorithm>

namespace chorus::engine {

Timeline::Timeline(plan::Program const& program, Clock& clock, Clock::TimePoint started)
    : program_(program), clock_(clock), started_(started) {
  auto const instructions = program.instructions.size();
  if (instructions <= steps_max) {
    times_.resize(instructions);
    return;
  }
  auto const rounds = std::max<std::size_t>(program.round_begin.size(), 2) - 1;
  auto const steps = std::min<std::size_t>(rounds, steps_max);
  times_.resize(steps);
  step_of_.resize(instructions);
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
    for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
      step_of_[i] = static_cast<std::uint16_t>(round * steps / rounds);
}

std::int64_t Timeline::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.now() - started_).count();
}

void Timeline::ready(std::uint32_t i, std::int64_t at_ns) {
  auto& entry = times(i);
  if (entry.ready_ns == never_ns) entry.ready_ns = at_ns;
}

void Timeline::ready(std::uint32_t i) {
  auto& entry = times(i);
  if (entry.ready_ns == never_ns) entry.ready_ns = now_ns();
}

void Timeline::moved(std::uint32_t i) {
  auto& entry = times(i);
  if (entry.moved_ns == never_ns) entry.moved_ns = now_ns();
}

std::int64_t Timeline::done(std::uint32_t i) {
  auto& entry = times(i);
  entry.done_ns = now_ns();
  ++entry.done;
  if (entry.ready_ns == never_ns) entry.ready_ns = entry.done_ns;
  if (entry.moved_ns == never_ns) entry.moved_ns = entry.done_ns;
  return entry.done_ns;
}

std::vector<FlightStep> Timeline::steps(std::vector<std::uint64_t> const& instruction_bytes) const {
  std::vector<FlightStep> steps(times_.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    steps[s].instructions = 0;
    steps[s].ready_ns = times_[s].ready_ns;
    steps[s].moved_ns = times_[s].moved_ns;
    steps[s].done_ns = times_[s].done_ns;
  }
  std::uint32_t round = 0;
  for (std::uint32_t i = 0; i < program_.instructions.size(); ++i) {
    while (round + 1 < program_.round_begin.size() && i >= program_.round_begin[round + 1]) ++round;
    auto& step = steps[is_aggregated() ? step_of_[i] : i];
    auto const& instruction = program_.instructions[i];
    if (step.instructions++ == 0) {
      step.first = i;
      step.round = round;
      step.op = instruction.op;
      step.peer = instruction.peer;
      step.message = instruction.message;
      step.chunk = instruction.writes_dst() ? instruction.dst_chunk : instruction.src_chunk;
      step.chunks = instruction.chunks;
    }
    step.bytes += instruction_bytes[i];
  }
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (times_[s].done < steps[s].instructions) steps[s].done_ns = never_ns;
  return steps;
}

}  // namespace chorus::engine
