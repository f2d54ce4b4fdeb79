#include <algorithm>
#include <vector>

#include "collectives/plan/matching.hpp"
#include "collectives/plan/positions.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/contributions.hpp"
#include "collectives/verify/fingerprints.hpp"
#include "collectives/verify/parts.hpp"
#include "collectives/verify/verify.hpp"

namespace chorus::verify {
namespace {

using plan::Buffer, plan::Endpoint, plan::Instruction, plan::Opcode, plan::Program, plan::Rank;

// Executes all programs greedily. A possible move stays possible until it is made, so the order of the moves decides
// neither whether all are made nor, without races, the final values.
template <class Values>
class Execution {
  using Value = typename Values::Id;

 public:
  explicit Execution(std::span<Program const> programs)
      : programs_(programs), ranks_(static_cast<std::uint32_t>(programs.size())), matching_(programs) {
    for (auto const& program : programs) {
      begin_.push_back(waits_.size());
      cell_begin_.push_back(cells_.size());
      add_instructions(program);
      add_cells(program);
    }
    positions_.resize(ranks_);
    for (std::uint32_t i = 0; i < ranks_; ++i) positions_[plan::rank_at_position(programs_.front().spec, i)] = i;
    ends_ready_.resize(matching_.messages());
    moved_.resize(matching_.messages());
  }

  std::string run() {
    for (auto const& program : programs_)
      for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
        if (waits_[begin_[program.rank] + i] == 0) ready_.push_back({program.rank, i});
    while (!ready_.empty() && failure_.empty()) {
      auto const next = ready_.back();
      ready_.pop_back();
      advance(next);
    }
    if (failure_.empty() && left_ > 0) failure_ = stuck();
    if (failure_.empty()) failure_ = compare_with_goal();
    return failure_;
  }

 private:
  // --- before the run
  void add_instructions(Program const& program) {
    auto const count = program.instructions.size();
    left_ += count;
    auto const base = waits_.size();
    waits_.resize(base + count);
    // The instructions that each instruction releases: the reverse of the dependency lists.
    auto const first_list = release_begin_.size();
    release_begin_.resize(first_list + count + 1);
    for (auto const& dependency : program.dependencies) ++release_begin_[first_list + dependency.instruction + 1];
    release_begin_[first_list] = releases_.size();
    for (std::size_t i = 0; i < count; ++i) release_begin_[first_list + i + 1] += release_begin_[first_list + i];
    releases_.resize(release_begin_.back());
    auto next = std::vector(release_begin_.begin() + static_cast<std::ptrdiff_t>(first_list), release_begin_.end());
    for (std::uint32_t i = 0; i < count; ++i)
      for (auto const& dependency : program.dependencies_of(i)) {
        ++waits_[base + i];
        releases_[next[dependency.instruction]++] = i;
      }
  }

  void add_cells(Program const& program) {
    auto const base = cells_.size();
    cells_.resize(base + 2 * std::size_t{program.chunks} + program.scratch_chunks);
    auto const held = plan::holding(program.spec, program.rank, program.chunks);
    bool const one_buffer = program.spec.in_place && !held.input.empty() && !held.output.empty();
    auto const where_input_is = base + (one_buffer ? program.chunks : 0);
    bool const is_result = ranks_ == 1 || !reduces(program.spec.op);
    for (auto c = held.input.first; c < held.input.first + held.input.count; ++c)
      cells_[where_input_is + c] = {values_.input(program.rank, c, is_result), false};
  }

  // --- moving
  void advance(Endpoint at) {
    auto const& instruction = programs_[at.rank].instructions[at.instruction];
    if (instruction.op != Opcode::send && !instruction.receives()) {
      for (std::uint32_t k = 0; k < instruction.chunks; ++k) {
        auto const source = read(at, instruction.src, instruction.src_chunk, k, false);
        if (instruction.op == Opcode::copy)
          write(at, k, source);
        else
          write(at, k, add(at, operand(at, instruction.dst, instruction.dst_chunk, k), source));
      }
      return complete(at);
    }
    auto message = matching_.message(at.rank, instruction);
    ++ends_ready_[message];
    // Messages of one channel move in order, so a message that has moved may release the next.
    auto const is_next = [this](std::size_t m) { return number(m) == 0 || moved_[m - 1]; };
    while (ends_ready_[message] == 2 && is_next(message) && failure_.empty()) {
      transfer(matching_.sender(message), matching_.receiver(message));
      moved_[message] = true;
      if (++message == matching_.messages() || number(message) == 0) break;
    }
  }

  [[nodiscard]] std::uint32_t number(std::size_t message) const {
    return instruction_of(matching_.sender(message)).message;
  }

  void transfer(Endpoint from, Endpoint to) {
    auto const &send = instruction_of(from), &receive = instruction_of(to);
    if (send.chunks != receive.chunks || send.lane != receive.lane)
      return fail(to, "the sender's message has another length or lane: " + plan::to_string(send));
    for (std::uint32_t k = 0; k < send.chunks; ++k) {
      auto const received = read(from, send.src, send.src_chunk, k, false);
      if (receive.op == Opcode::recv)
        write(to, k, received);
      else
        write(to, k, add(to, operand(to, receive.src, receive.src_chunk, k), received));
    }
    complete(from);
    complete(to);
  }

  void complete(Endpoint at) {
    --left_;
    auto const list = begin_[at.rank] + at.rank + at.instruction;  // one list more than instructions per rank
    for (auto r = release_begin_[list]; r < release_begin_[list + 1]; ++r)
      if (--waits_[begin_[at.rank] + releases_[r]] == 0) ready_.push_back({at.rank, releases_[r]});
  }

  // --- values
  // Value of a chunk of a buffer. wide: the value is a partial sum in f32 (wide_result_flag).
  struct Cell {
    Value value = Values::undefined;
    bool wide = false;
  };

  Cell& cell(Endpoint at, Buffer buffer, std::uint32_t chunk, std::uint32_t k) {
    auto const& program = programs_[at.rank];
    return cells_[cell_begin_[at.rank] + static_cast<std::size_t>(buffer) * program.chunks + chunk +
                  std::size_t{k} * program.instructions[at.instruction].stride];
  }

  Value read(Endpoint at, Buffer buffer, std::uint32_t chunk, std::uint32_t k, bool wide) {
    auto const& found = cell(at, buffer, chunk, k);
    if (found.value == Values::undefined)
      fail(at, "reads " + std::string(plan::name(buffer)) + " before anything is there");
    else if (found.wide != wide)
      fail(at, found.wide ? "reads a wide partial sum as if it were rounded" : "takes for wide what is rounded");
    return found.value;
  }

  Value operand(Endpoint at, Buffer buffer, std::uint32_t chunk, std::uint32_t k) {
    return read(at, buffer, chunk, k, instruction_of(at).has_wide_operand());
  }

  void write(Endpoint at, std::uint32_t k, Value value) {
    auto const& instruction = instruction_of(at);
    if (instruction.is_final() && value != Values::undefined) {
      if (values_.finished(value)) return fail(at, "is final, but what it writes was finished before");
      if (!values_.complete(value, ranks_)) return fail(at, "is final, but writes only " + values_.describe(value));
      value = values_.finish(value);
    }
    cell(at, instruction.dst, instruction.dst_chunk, k) = {value, instruction.has_wide_result()};
  }

  Value add(Endpoint at, Value a, Value b) {
    if (a == Values::undefined || b == Values::undefined) return Values::undefined;
    if (values_.finished(a) || values_.finished(b)) fail(at, "adds to a finished result");
    auto const& instruction = instruction_of(at);
    auto const check = [&](Value value, bool is_partial, std::string const& which) {
      if (values_.is_alone(value) == is_partial)
        fail(at, "takes " + which + " for " + (is_partial ? "a sum" : "one contribution") + ", which is " +
                     values_.describe(value));
    };
    check(a, instruction.has_partial_operand(), "its operand");
    check(b, instruction.has_partial_other(), "what it adds");
    return values_.sum(a, b);
  }

  // --- after the run
  std::string stuck() {
    for (auto const& program : programs_)
      for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
        auto const& instruction = program.instructions[i];
        bool const waits = waits_[begin_[program.rank] + i] == 0 &&
                           (instruction.op == Opcode::send || instruction.receives()) &&
                           !moved_[matching_.message(program.rank, instruction)];
        if (waits)
          return "deadlock: " + where(program, i) + " waits for ever, as do " + std::to_string(left_ - 1) + " others";
      }
    return "deadlock";
  }

  std::string compare_with_goal() {
    for (auto const& program : programs_) {
      auto const output = plan::holding(program.spec, program.rank, program.chunks).output;
      for (auto c = output.first; c < output.first + output.count; ++c) {
        auto const& found = cells_[cell_begin_[program.rank] + program.chunks + c];
        auto const text = [&] {
          return "rank " + std::to_string(program.rank) + ": output[" + std::to_string(c) + "] ";
        };
        if (found.value == Values::undefined) return text() + "is never written";
        if (!is_goal(program, c, found.value)) return text() + "ends as " + values_.describe(found.value);
        if (found.wide) return text() + "ends as a wide partial sum";
        if (!values_.finished(found.value)) return text() + "is complete, but nothing that made it is final";
      }
    }
    return {};
  }

  // Returns true if the operation defines this value for chunk c of this rank's output.
  bool is_goal(Program const& program, std::uint32_t c, Value value) {
    auto const per_block = program.chunks / ranks_;
    switch (program.spec.op) {
      case Op::all_reduce:
      case Op::reduce:
      case Op::reduce_scatter:
        return values_.complete(value, ranks_, c);
      case Op::broadcast:
      case Op::scatter:
        return values_.is_input(value, program.spec.root, c);
      case Op::all_gather:
      case Op::gather:
      case Op::barrier:
        return values_.is_input(value, plan::rank_at_position(program.spec, c / per_block), c);
      case Op::all_to_all:
        return values_.is_input(value, plan::rank_at_position(program.spec, c / per_block),
                                positions_[program.rank] * per_block + c % per_block);
    }
    return false;
  }

  [[nodiscard]] Instruction const& instruction_of(Endpoint at) const {
    return programs_[at.rank].instructions[at.instruction];
  }

  void fail(Endpoint at, std::string const& why) {
    if (failure_.empty()) failure_ = where(programs_[at.rank], at.instruction) + ": " + why;
  }

  std::span<Program const> programs_;
  std::uint32_t ranks_;
  std::vector<std::uint32_t> positions_;  // by rank
  plan::Matching matching_;
  std::vector<std::size_t> begin_;          // per rank: its first instruction in waits_
  std::vector<std::uint32_t> waits_;        // per instruction: dependencies not yet complete
  std::vector<std::size_t> release_begin_;  // per instruction, and one more per rank
  std::vector<std::uint32_t> releases_;
  std::vector<std::size_t> cell_begin_;  // per rank: its first chunk in cells_: input, output, scratch
  std::vector<Cell> cells_;
  Values values_;
  std::vector<std::uint8_t> ends_ready_;  // per message
  std::vector<bool> moved_;
  std::vector<Endpoint> ready_;
  std::size_t left_ = 0;
  std::string failure_;
};

}  // namespace

std::string check_execution(std::span<Program const> programs) {
  if (programs.size() <= max_exact_ranks) return Execution<Contributions>(programs).run();
  return Execution<Fingerprints>(programs).run();
}

}  // namespace chorus::verify
