#include "collectives/verify/interpreter_for_tests.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace chorus::verify {

using plan::Buffer, plan::Instruction, plan::Layout, plan::Opcode, plan::Program, plan::Rank;

namespace {

// Places of the elements of one side of an instruction, in order.
class Elements {
 public:
  Elements(Layout const& layout, Instruction const& instruction, Buffer buffer, std::uint32_t chunk) {
    for (std::uint32_t k = 0; k < instruction.chunks; ++k) add(layout, buffer, chunk + k * instruction.stride);
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  std::uint64_t operator[](std::uint64_t position) const {
    auto at = pieces_.begin();
    for (; position >= at->size(); ++at) position -= at->size();
    return at->begin + position;
  }

 private:
  // Scratch chunk k has the size of chunk k mod C, and scratch chunks lie in their order.
  void add(Layout const& layout, Buffer buffer, std::uint32_t chunk) {
    auto range = layout.range(chunk % layout.chunks());
    if (buffer == Buffer::scratch) {
      range.begin += chunk / layout.chunks() * layout.elements();
      range.end += chunk / layout.chunks() * layout.elements();
    } else {
      auto const piece = layout.piece(chunk, 1);
      range = {piece.begin, piece.begin + piece.elements};
    }
    size_ += range.size();
    if (!pieces_.empty() && pieces_.back().end == range.begin)
      pieces_.back().end = range.end;
    else
      pieces_.push_back(range);
  }

  std::vector<plan::ElementRange> pieces_;
  std::uint64_t size_ = 0;
};

// Returns the elements of one rank's block, or of the whole vector.
plan::ElementRange lies_at(Layout const& layout, plan::ChunkRange range) {
  if (range.empty()) return {};
  if (range.count == layout.chunks()) return {0, layout.elements()};
  auto const piece = layout.piece(range.first, range.count);
  return {piece.begin, piece.begin + piece.elements};
}

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

void Interpreter::start(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes,
                        std::uint32_t segments) {
  segments_ = segments;
  left_ = actions_;
  std::fill(done_.begin(), done_.end(), 0);
  layouts_.clear();
  for (auto const& program : programs_) {
    layouts_.push_back(plan::layouts(program, sizes[program.rank]));
    auto const& [in, out] = layouts_.back();
    for (auto const which : {Buffer::input, Buffer::output})
      buffers_[buffer(program.rank, which)].assign(std::max(in.elements(), out.elements()), -1);
    auto const vectors = program.scratch_chunks / program.chunks + 1;
    buffers_[buffer(program.rank, Buffer::scratch)].assign(vectors * in.elements(), -1);
    auto const held = plan::holding(program.spec, program.rank, program.chunks).input;
    auto const begin = static_cast<std::ptrdiff_t>(lies_at(in, held).begin);
    std::copy(inputs[program.rank].begin(), inputs[program.rank].end(),
              buffers_[buffer(program.rank, Buffer::input)].begin() + begin);
  }
}

bool Interpreter::run(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes) {
  start(inputs, sizes, 1);
  while (!left_.empty())
    if (!sweep(1)) return false;
  return true;
}

bool Interpreter::run_shuffled(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes,
                               std::uint32_t segments, std::uint32_t seed) {
  start(inputs, sizes, segments);
  std::minstd_rand random(seed);
  while (!left_.empty()) {
    std::shuffle(left_.begin(), left_.end(), random);
    if (!sweep(1 + static_cast<std::uint32_t>(random() % segments))) return false;
  }
  return true;
}

// Tries every action once. Returns false if none can run.
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
  auto const& source = buffers_[buffer(action.rank, from.src)];
  auto& destination = buffers_[buffer(action.peer, to.dst)];
  auto const accumulator = to.op == Opcode::recv_reduce ? to.src : to.dst;
  auto const& operand = buffers_[buffer(action.peer, accumulator)];
  auto const operand_chunk = to.op == Opcode::recv_reduce ? to.src_chunk : to.dst_chunk;
  auto const adds = to.op == Opcode::recv_reduce || to.op == Opcode::reduce;

  auto const segment = done(action.rank, action.instruction)++;
  if (action.rank != action.peer) ++done(action.peer, action.peer_instruction);
  auto const from_at = Elements(layout(action.rank, from.src), from, from.src, from.src_chunk);
  auto const to_at = Elements(layout(action.peer, to.dst), to, to.dst, to.dst_chunk);
  auto const operand_at = Elements(layout(action.peer, accumulator), to, accumulator, operand_chunk);
  auto const end = from_at.size() * (segment + 1) / segments_;
  for (auto k = from_at.size() * segment / segments_; k < end; ++k) {
    auto value = source[from_at[k]];
    if (adds) value += operand[operand_at[k]];
    if (to.is_final()) value /= static_cast<std::int64_t>(programs_.size());
    destination[to_at[k]] = value;
  }
}

Interpreter::Numbers Interpreter::input(Rank rank) const { return held(rank, Buffer::input); }

Interpreter::Numbers Interpreter::output(Rank rank) const { return held(rank, Buffer::output); }

Interpreter::Numbers Interpreter::held(Rank rank, Buffer which) const {
  auto const& program = programs_[rank];
  auto const both = plan::holding(program.spec, rank, program.chunks);
  auto const range = which == Buffer::input ? both.input : both.output;
  auto const where = lies_at(layout(rank, which), range);
  auto const begin = buffers_[buffer(rank, which)].begin();
  return {begin + static_cast<std::ptrdiff_t>(where.begin), begin + static_cast<std::ptrdiff_t>(where.end)};
}

std::size_t Interpreter::buffer(Rank rank, Buffer which) const {
  auto const& program = programs_[rank];
  bool const one_buffer = program.spec.in_place && !program.input.empty() && !program.output.empty();
  if (one_buffer && which == Buffer::input) which = Buffer::output;
  return 3 * std::size_t{rank} + static_cast<std::size_t>(which);
}

Layout const& Interpreter::layout(Rank rank, Buffer which) const {
  return which == Buffer::output ? layouts_[rank].output : layouts_[rank].input;
}

}  // namespace chorus::verify
