#include "collectives/model/follow_for_tests.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/model/volume.hpp"
#include "collectives/plan/matching.hpp"

namespace chorus::model {
namespace {

using plan::Endpoint, plan::Instruction, plan::Opcode, plan::Program;

bool communicates(Instruction const& i) { return i.op == Opcode::send || i.receives(); }

std::uint64_t bytes_of(Volume const& volume, Instruction const& i) {
  auto const chunk = i.writes_dst() ? i.dst_chunk : i.src_chunk;
  return volume.bytes({i.writes_dst() ? i.dst : i.src, chunk, i.chunks, i.stride});
}

// Events in virtual time. A segment can move when its dependencies are fulfilled and both ends of its message are
// ready. The ports determine the time: each serves requests in order.
class Simulation {
 public:
  Simulation(std::span<Program const> programs, Network const& network, Volume const& volume, std::size_t segments)
      : programs_(programs),
        network_(network),
        constants_(network.constants()),
        most_segments_(segments),
        gamma_s_per_byte_(network.gamma_s_per_byte(volume.bytes())),
        matching_(programs),
        ports_(programs.size()) {
    for (auto const level : network.limited_levels()) uplinks_.push_back({level, ports_});
    for (auto const& program : programs) {
      begin_.push_back(steps_.size());
      for (auto const& instruction : program.instructions) steps_.push_back(step_of(volume, instruction));
      link_dependents(program);
    }
    first_end_ready_.resize(matching_.messages());
    put_in_order();
  }

  double run() {
    for (auto const& who : in_order_) offer(who);
    while (!events_.empty()) {
      auto const event = events_.top();
      events_.pop();
      now_ = event.at_s;
      finish_segment(event.who);
    }
    return now_;
  }

 private:
  // Progress of an instruction, in segments. Segment s may start when all segmentwise dependencies are past s, and all
  // other dependencies and segment s - 1 of the instruction itself are finished.
  struct Step {
    double segment_bytes = 0;
    std::uint32_t segments = 1;
    std::uint32_t done = 0;
    bool offered = false;  // the segment `done` is in progress, or waits for its other end
    double offered_s = 0;
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
    std::uint64_t order;  // among equal times the earlier round is first, then the earlier emission
    Endpoint who;
    bool operator>(Event const& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
  };

  Step step_of(Volume const& volume, Instruction const& instruction) const {
    // Computed from the number of chunks alone, so that it is the same for both ends of a message and for both sides of
    // a segmentwise dependency.
    auto const largest = (static_cast<double>(volume.bytes()) / volume.chunks() + 1) * instruction.chunks;
    Step step;
    step.segments = static_cast<std::uint32_t>(
        std::clamp(largest / static_cast<double>(constants_.segment_bytes), 1.0, static_cast<double>(most_segments_)));
    step.segment_bytes = static_cast<double>(bytes_of(volume, instruction)) / step.segments;
    return step;
  }

  void put_in_order() {
    std::vector<std::tuple<std::size_t, std::uint32_t, plan::Rank, std::uint32_t>> keys;
    for (auto const& program : programs_)
      for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
        for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
          keys.emplace_back(round, i - program.round_begin[round], program.rank, i);
    std::sort(keys.begin(), keys.end());
    place_.resize(keys.size());
    for (auto const& [round, nth, rank, i] : keys) {
      place_[begin_[rank] + i] = in_order_.size();
      in_order_.push_back({rank, i});
    }
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

  // Starts the next segment if it may start now; a message starts when its other end is ready.
  void offer(Endpoint at) {
    if (!may_start(at)) return;
    step(at).offered = true;
    auto const& i = instruction(at);
    auto const gamma = i.op == Opcode::copy ? constants_.gamma_s_per_byte : gamma_s_per_byte_;
    if (!communicates(i)) return finish_at(now_ + step(at).segment_bytes * gamma, at);
    auto const message = matching_.message(at.rank, i);
    first_end_ready_[message] = !first_end_ready_[message];
    auto const from = matching_.sender(message), to = matching_.receiver(message);
    step(at).offered_s = now_;
    if (!first_end_ready_[message]) transfer(from, to);
  }

  void transfer(Endpoint from, Endpoint to) {
    auto const& link = network_.link(from.rank, to.rank);
    auto const bytes = step(from).segment_bytes;
    auto &send_free_s = ports_[from.rank].send_free_s, &receive_free_s = ports_[to.rank].receive_free_s;
    bool const begins = step(from).done == 0;
    auto const overhead_s = begins ? constants_.overhead_s(link) : 0;
    auto const on_its_way_s = begins ? link.alpha_s - overhead_s : 0;
    // The receiver need not be ready before the message arrives.
    auto start_s = std::max({step(from).offered_s, step(to).offered_s - on_its_way_s, send_free_s, receive_free_s});
    auto byte_s = link.beta_s_per_byte;
    for (auto& [level, groups] : uplinks_) {
      auto const leaves = network_.group(level, from.rank), enters = network_.group(level, to.rank);
      if (leaves == enters) continue;
      start_s = std::max({start_s, groups[leaves].send_free_s, groups[enters].receive_free_s});
      byte_s = std::max(byte_s, network_.uplink_s_per_byte(level));
    }
    for (auto& [level, groups] : uplinks_) {
      auto const leaves = network_.group(level, from.rank), enters = network_.group(level, to.rank);
      if (leaves == enters) continue;
      groups[leaves].send_free_s = groups[enters].receive_free_s = start_s + bytes * network_.uplink_s_per_byte(level);
    }
    send_free_s = start_s + overhead_s + bytes * byte_s;
    receive_free_s = send_free_s;
    if (instruction(to).op == Opcode::recv_reduce) receive_free_s += bytes * gamma_s_per_byte_;
    finish_at(send_free_s, from);
    finish_at(receive_free_s + on_its_way_s, to);
  }

  void finish_at(double at_s, Endpoint who) { events_.push({at_s, place_[begin_[who.rank] + who.instruction], who}); }

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
  Network const& network_;
  Constants const& constants_;
  std::size_t most_segments_;  // of a message
  double gamma_s_per_byte_;
  plan::Matching matching_;
  std::vector<Ports> ports_;  // per rank
  struct Uplinks {
    Level level;
    std::vector<Ports> groups;
  };
  std::vector<Uplinks> uplinks_;
  std::vector<std::size_t> begin_;            // per rank: its first instruction in steps_
  std::vector<Step> steps_;                   // per instruction
  std::vector<std::size_t> dependent_begin_;  // per instruction, and one more per rank
  std::vector<Dependent> dependents_;
  std::vector<bool> first_end_ready_;  // per message: one end waits for the other
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Endpoint> in_order_;    // by round, place in the round, rank
  std::vector<std::uint64_t> place_;  // per instruction: in this order
  double now_ = 0;
};

// Counts the rounds in which any rank sends, and the bytes that the busiest rank sends.
void count(std::span<Program const> programs, Volume const& volume, Cost& cost) {
  std::vector<bool> sends_in;
  for (auto const& program : programs) {
    auto bytes = std::uint64_t{0};
    for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
      for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
        if (auto const& instruction = program.instructions[i]; instruction.op == Opcode::send) {
          if (sends_in.size() <= round) sends_in.resize(round + 1);
          sends_in[round] = true;
          bytes += bytes_of(volume, instruction);
        }
    cost.bytes_per_rank = std::max(cost.bytes_per_rank, bytes);
  }
  cost.rounds = static_cast<std::uint32_t>(std::count(sends_in.begin(), sends_in.end(), true));
}

}  // namespace

Cost follow(std::span<Program const> programs, Network const& network, std::uint64_t elements,
            std::size_t element_bytes, std::size_t most_segments) {
  CHORUS_ASSERT(!programs.empty() && programs.size() == network.ranks(), "one place for every rank's program");
  auto const volume = Volume(programs.front().spec, programs.front().chunks, elements, element_bytes);
  Cost result;
  count(programs, volume, result);
  result.seconds = Simulation(programs, network, volume, most_segments).run();
  return result;
}

}  // namespace chorus::model
