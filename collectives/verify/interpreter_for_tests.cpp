#include "collectives/verify/interpreter_for_tests.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace chorus::verify {

using plan::Buffer, plan::Instruction, plan::Layout, plan::Opcode, plan::Program, plan::Rank;

namespace {

// Where the elements of one side of an instruction lie, one after the other.
class Elements {
 public:
  Elements(Layout const& layout, Instruction const& instruction, std::uint32_t chunk)
      : layout_(layout), chunk_(chunk), stride_(instruction.stride), begin_(layout.range(chunk).begin) {
    for (std::uint32_t k = 0; k < instruction.chunks; ++k) size_ += layout.range(chunk + k * stride_).size();
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  std::uint64_t operator[](std::uint64_t position) const {
    if (stride_ == 1) return begin_ + position;
    for (auto chunk = chunk_;; chunk += stride_) {
      auto const range = layout_.range(chunk);
      if (position < range.size()) return range.begin + position;
      position -= range.size();
    }
  }

 private:
  Layout const& layout_;
  std::uint32_t chunk_, stride_;
  std::uint64_t begin_, size_ = 0;
};

}  // namespace

Interpreter::Interpreter(std::span<Program const> programs) : programs_(programs), buffers_(3 * programs.size()) {
  std::map<std::tuple<Rank, Rank, std::uint32_t>, std::uint32_t> receivers;
  for (auto const& program : programs) {
    begin_.push_back(done_.size());
    done_.resize(done_.size() + program.instructions.size());
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
      if (auto const& instruction = program.instructions[i]; instruction.receives())
        receivers[{instruction.peer, program.rank, instruction.message}] = i;
  }
  for (auto const& program : programs)
    for (std::uint32_t round = 0; round + 1 < program.round_begin.size(); ++round)
      for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i) {
        auto const& instruction = program.instructions[i];
        if (instruction.op == Opcode::send)
          actions_.push_back({program.rank, instruction.peer, i,
                              receivers.at({program.rank, instruction.peer, instruction.message}), round});
        else if (!instruction.receives())
          actions_.push_back({program.rank, program.rank, i, i, round});
      }
  std::sort(actions_.begin(), actions_.end(), [](Action const& a, Action const& b) {
    return std::tie(a.round, a.rank, a.instruction) < std::tie(b.round, b.rank, b.instruction);
  });
}

void Interpreter::start(std::vector<Numbers> const& inputs, std::uint32_t segments) {
  layout_ = Layout(inputs.front().size(), programs_.front().chunks);
  segments_ = segments;
  left_ = actions_;
  std::fill(done_.begin(), done_.end(), 0);
  for (auto const& program : programs_) {
    buffer(program.rank, Buffer::output).assign(layout_.elements(), -1);
    buffer(program.rank, Buffer::input) = inputs[program.rank];
  }
}

bool Interpreter::run(std::vector<Numbers> const& inputs) {
  start(inputs, 1);
  while (!left_.empty())
    if (!sweep(1)) return false;
  return true;
}

bool Interpreter::run_shuffled(std::vector<Numbers> const& inputs, std::uint32_t segments, std::uint32_t seed) {
  start(inputs, segments);
  std::minstd_rand random(seed);
  while (!left_.empty()) {
    std::shuffle(left_.begin(), left_.end(), random);
    if (!sweep(1 + static_cast<std::uint32_t>(random() % segments))) return false;
  }
  return true;
}

// Tries every action once; false if none could run.
bool Interpreter::sweep(std::uint32_t segments_at_once) {
  auto moved = false;
  auto const finished = [&](Action const& action) {
    for (std::uint32_t n = 0; n < segments_at_once; ++n) {
      if (!may_run(action.rank, action.instruction) || !may_run(action.peer, action.peer_instruction)) break;
      run_segment(action);
      moved = true;
    }
    return done(action.rank, action.instruction) == segments_;
  };
  std::erase_if(left_, finished);
  return moved;
}

bool Interpreter::may_run(Rank rank, std::uint32_t instruction) {
  auto const segment = done(rank, instruction);
  if (segment == segments_) return false;
  auto const dependencies = programs_[rank].dependencies_of(instruction);
  return std::all_of(dependencies.begin(), dependencies.end(), [&](plan::Dependency const& dependency) {
    auto const finished = done(rank, dependency.instruction);
    return dependency.segmentwise ? finished > segment : finished == segments_;
  });
}

void Interpreter::run_segment(Action const& action) {
  auto const& from = programs_[action.rank].instructions[action.instruction];
  auto const& to = programs_[action.peer].instructions[action.peer_instruction];
  auto const& source = buffer(action.rank, from.src);
  auto& destination = buffer(action.peer, to.dst);
  auto const& operand = to.op == Opcode::recv_reduce ? buffer(action.peer, to.src) : destination;
  auto const operand_chunk = to.op == Opcode::recv_reduce ? to.src_chunk : to.dst_chunk;
  auto const adds = to.op == Opcode::recv_reduce || to.op == Opcode::reduce;

  auto const segment = done(action.rank, action.instruction)++;
  if (action.rank != action.peer) ++done(action.peer, action.peer_instruction);
  auto const from_at = Elements(layout_, from, from.src_chunk), to_at = Elements(layout_, to, to.dst_chunk);
  auto const operand_at = Elements(layout_, to, operand_chunk);
  auto const end = from_at.size() * (segment + 1) / segments_;
  for (auto k = from_at.size() * segment / segments_; k < end; ++k) {
    auto value = source[from_at[k]];
    if (adds) value += operand[operand_at[k]];
    if (to.is_final()) value /= static_cast<std::int64_t>(programs_.size());
    destination[to_at[k]] = value;
  }
}

Interpreter::Numbers& Interpreter::buffer(Rank rank, Buffer which) {
  if (programs_[rank].spec.in_place && which == Buffer::input) which = Buffer::output;
  return buffers_[3 * rank + static_cast<std::size_t>(which)];
}

}  // namespace chorus::verify
