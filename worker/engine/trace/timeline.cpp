#include "worker/engine/trace/timeline.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <tuple>

namespace chorus::engine {
namespace {

// The wait of one step for its peer. Steps of one direction and peer come one after the other.
struct Wait {
  bool is_send = false;
  plan::Rank peer = 0;
  std::uint32_t first = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t done_ns = 0;
};

Wait wait_of(FlightStep const& step, std::int64_t ended_ns) {
  auto const or_end = [ended_ns](std::int64_t at_ns) { return at_ns == never_ns ? ended_ns : at_ns; };
  // Aggregated rounds follow each other, whatever their peers.
  bool const is_one = step.instructions == 1;
  return {.is_send = is_one && step.op == plan::Opcode::send,
          .peer = is_one ? step.peer : 0,
          .first = step.first,
          .from_ns = or_end(step.ready_ns),
          .to_ns = or_end(step.moved_ns),
          .done_ns = or_end(step.done_ns)};
}

bool has_peer(FlightStep const& step) {
  return step.instructions != 1 || step.op == plan::Opcode::send || step.op == plan::Opcode::recv ||
         step.op == plan::Opcode::recv_reduce;
}

}  // namespace

double waited_seconds(std::vector<FlightStep> const& steps, std::int64_t ended_ns) {
  boost::container::small_vector<Wait, Timeline::steps_max> waits;
  waits.reserve(steps.size());
  for (auto const& step : steps)
    if (has_peer(step)) waits.push_back(wait_of(step, ended_ns));
  std::sort(waits.begin(), waits.end(), [](Wait const& a, Wait const& b) {
    return std::tie(a.is_send, a.peer, a.first) < std::tie(b.is_send, b.peer, b.first);
  });
  for (std::size_t i = 1; i < waits.size(); ++i)
    if (waits[i].is_send == waits[i - 1].is_send && waits[i].peer == waits[i - 1].peer)
      waits[i].from_ns = std::max(waits[i].from_ns, waits[i - 1].done_ns);
  std::sort(waits.begin(), waits.end(), [](Wait const& a, Wait const& b) { return a.from_ns < b.from_ns; });
  std::int64_t waited_ns = 0, until_ns = 0;
  for (auto const& wait : waits) {
    waited_ns += std::max<std::int64_t>(wait.to_ns - std::max(wait.from_ns, until_ns), 0);
    until_ns = std::max(until_ns, wait.to_ns);
  }
  return static_cast<double>(waited_ns) * 1e-9;
}

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

void Timeline::begin(Clock::TimePoint started) {
  started_ = started;
  std::fill(times_.begin(), times_.end(), Times{});
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

void Timeline::date_back(Clock::TimePoint to) {
  auto const to_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(to - started_).count();
  for (auto& entry : times_)
    for (auto* const at_ns : {&entry.ready_ns, &entry.moved_ns, &entry.done_ns}) *at_ns = std::min(*at_ns, to_ns);
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
