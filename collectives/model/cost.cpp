#include "collectives/model/cost.hpp"

#include <algorithm>
#include <queue>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/plan/layout.hpp"
#include "collectives/plan/matching.hpp"

namespace chorus::model {
namespace {

using plan::Endpoint, plan::Instruction, plan::Layout, plan::Opcode, plan::Program;

std::uint64_t elements_of(Layout const& layout, std::uint32_t chunk, Instruction const& i) {
  if (i.stride == 1) return layout.range(chunk, i.chunks).size();
  auto sum = std::uint64_t{0};
  for (std::uint32_t k = 0; k < i.chunks; ++k) sum += layout.range(chunk + k * i.stride).size();
  return sum;
}

bool communicates(Instruction const& i) { return i.op == Opcode::send || i.receives(); }

// Scratch is cut like the vector, and starts over after the vector's last chunk.
std::uint64_t elements_of(Layout const& layout, Instruction const& i) {
  auto const buffer = i.writes_dst() ? i.dst : i.src;
  auto const chunk = i.writes_dst() ? i.dst_chunk : i.src_chunk;
  if (buffer != plan::Buffer::scratch) return elements_of(layout, chunk, i);
  return (layout.elements() / layout.chunks() + (layout.elements() % layout.chunks() != 0)) * i.chunks;
}

// Events in virtual time. What can happen at all is decided by dependencies and by both ends of a message being ready;
// when, by the ports: each is given to whoever asks first.
class Simulation {
 public:
  Simulation(std::span<Program const> programs, std::span<Locality const> localities, Layout const& layout,
             std::size_t element_bytes, Constants const& constants)
      : programs_(programs),
        localities_(localities),
        constants_(constants),
        matching_(programs),
        ports_(programs.size()) {
    for (auto const& program : programs) {
      begin_.push_back(steps_.size());
      for (auto const& instruction : program.instructions)
        steps_.push_back(step_of(layout, instruction, element_bytes));
      link_dependents(program);
    }
    first_end_ready_.resize(matching_.messages());
  }

  double run() {
    for (auto const& program : programs_)
      for (std::uint32_t i = 0; i < program.instructions.size(); ++i) offer({program.rank, i});
    while (!events_.empty()) {
      auto const event = events_.top();
      events_.pop();
      now_ = event.at_s;
      finish_segment(event.who);
    }
    return now_;
  }

 private:
  // How far an instruction has come, in segments. Segment s may start when all segmentwise dependencies are past s, all
  // others are finished, and segment s - 1 of its own is.
  struct Step {
    double segment_bytes = 0;
    std::uint32_t segments = 1;
    std::uint32_t done = 0;
    bool offered = false;  // the segment `done` is under way, or waits for its other end
  };
  struct Dependent {
    std::uint32_t instruction;
    bool segmentwise;
  };
  struct Ports {
    double send_free_s = 0;
    double receive_free_s = 0;
  };
  struct Event {
    double at_s;
    std::uint64_t order;  // of two at one time, the one that was foreseen first
    Endpoint who;
    bool operator>(Event const& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
  };

  Step step_of(Layout const& layout, Instruction const& instruction, std::size_t element_bytes) const {
    // From the number of chunks alone: the same for both ends of a message and for both sides of a segmentwise
    // dependency.
    auto const largest_chunk = layout.elements() / layout.chunks() + 1;
    auto const largest = static_cast<double>(largest_chunk) * static_cast<double>(element_bytes) * instruction.chunks;
    Step step;
    auto const most = std::max<std::size_t>(max_followed_segments / std::max<std::size_t>(matching_.messages(), 1), 1);
    step.segments = static_cast<std::uint32_t>(
        std::clamp(largest / static_cast<double>(constants_.segment_bytes), 1.0, static_cast<double>(most)));
    step.segment_bytes =
        static_cast<double>(elements_of(layout, instruction)) * static_cast<double>(element_bytes) / step.segments;
    return step;
  }

  void link_dependents(Program const& program) {
    auto const base = dependent_begin_.size();
    dependent_begin_.resize(base + program.instructions.size() + 1);
    for (auto const& dependency : program.dependencies) ++dependent_begin_[base + dependency.instruction + 1];
    dependent_begin_[base] = dependents_.size();
    for (auto i = base + 1; i < dependent_begin_.size(); ++i) dependent_begin_[i] += dependent_begin_[i - 1];
    dependents_.resize(dependent_begin_.back());
    auto next = std::vector(dependent_begin_.begin() + static_cast<std::ptrdiff_t>(base), dependent_begin_.end());
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
      for (auto const& dependency : program.dependencies_of(i))
        dependents_[next[dependency.instruction]++] = {i, dependency.segmentwise};
  }

  Step& step(Endpoint at) { return steps_[begin_[at.rank] + at.instruction]; }
  Instruction const& instruction(Endpoint at) const { return programs_[at.rank].instructions[at.instruction]; }

  bool may_start(Endpoint at) {
    auto const& mine = step(at);
    if (mine.offered || mine.done == mine.segments) return false;
    for (auto const& [earlier, segmentwise] : programs_[at.rank].dependencies_of(at.instruction)) {
      auto const& other = step({at.rank, earlier});
      if (other.done < (segmentwise ? std::min(mine.done + 1, other.segments) : other.segments)) return false;
    }
    return true;
  }

  // Starts the next segment if it may start now; for a message, with its other end, or waits for that one.
  void offer(Endpoint at) {
    if (!may_start(at)) return;
    step(at).offered = true;
    auto const& i = instruction(at);
    if (!communicates(i)) return finish_at(now_ + step(at).segment_bytes * constants_.gamma_s_per_byte, at);
    auto const message = matching_.message(at.rank, i);
    first_end_ready_[message] = !first_end_ready_[message];
    if (!first_end_ready_[message]) transfer(matching_.sender(message), matching_.receiver(message));
  }

  void transfer(Endpoint from, Endpoint to) {
    auto const& link = constants_.link(shared_level(localities_[from.rank], localities_[to.rank]));
    auto const bytes = step(from).segment_bytes;
    auto &send_free_s = ports_[from.rank].send_free_s, &receive_free_s = ports_[to.rank].receive_free_s;
    auto const start_s = std::max({now_, send_free_s, receive_free_s});
    auto const arrived_s = start_s + (step(from).done == 0 ? link.alpha_s : 0) + bytes * link.beta_s_per_byte;
    send_free_s = arrived_s;
    receive_free_s = arrived_s;
    if (instruction(to).op == Opcode::recv_reduce) receive_free_s += bytes * constants_.gamma_s_per_byte;
    finish_at(send_free_s, from);
    finish_at(receive_free_s, to);
  }

  void finish_at(double at_s, Endpoint who) { events_.push({at_s, ++foreseen_, who}); }

  void finish_segment(Endpoint who) {
    auto& mine = step(who);
    ++mine.done;
    mine.offered = false;
    offer(who);
    auto const list = begin_[who.rank] + who.rank + who.instruction;  // one list more than instructions per rank
    for (auto d = dependent_begin_[list]; d < dependent_begin_[list + 1]; ++d)
      if (dependents_[d].segmentwise || mine.done == mine.segments) offer({who.rank, dependents_[d].instruction});
  }

  std::span<Program const> programs_;
  std::span<Locality const> localities_;
  Constants const& constants_;
  plan::Matching matching_;
  std::vector<Ports> ports_;                  // per rank
  std::vector<std::size_t> begin_;            // per rank: its first instruction in steps_
  std::vector<Step> steps_;                   // per instruction
  std::vector<std::size_t> dependent_begin_;  // per instruction, and one more per rank
  std::vector<Dependent> dependents_;
  std::vector<bool> first_end_ready_;  // per message: one end waits for the other
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t foreseen_ = 0;
  double now_ = 0;
};

// Rounds in which anybody sends, and what the busiest rank sends.
void count(std::span<Program const> programs, Layout const& layout, std::size_t element_bytes, Cost& cost) {
  std::vector<bool> sends_in;
  for (auto const& program : programs) {
    auto elements = std::uint64_t{0};
    for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
      for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
        if (auto const& instruction = program.instructions[i]; instruction.op == Opcode::send) {
          if (sends_in.size() <= round) sends_in.resize(round + 1);
          sends_in[round] = true;
          elements += elements_of(layout, instruction);
        }
    cost.bytes_per_rank = std::max(cost.bytes_per_rank, elements * element_bytes);
  }
  cost.rounds = static_cast<std::uint32_t>(std::count(sends_in.begin(), sends_in.end(), true));
}

}  // namespace

Cost cost(std::span<Program const> programs, std::span<Locality const> localities, std::uint64_t elements,
          std::size_t element_bytes, Constants const& constants) {
  CHORUS_ASSERT(!programs.empty() && programs.size() == localities.size(), "one locality for every rank's program");
  auto const layout = Layout(elements, programs.front().chunks);
  Cost result;
  count(programs, layout, element_bytes, result);
  result.seconds = Simulation(programs, localities, layout, element_bytes, constants).run();
  return result;
}

}  // namespace chorus::model
