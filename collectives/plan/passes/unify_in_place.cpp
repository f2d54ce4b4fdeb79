#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {
namespace {

bool copies_onto_itself(Instruction const& instruction) {
  return instruction.op == Opcode::copy && instruction.src == instruction.dst &&
         instruction.src_chunk == instruction.dst_chunk && !instruction.is_final();
}

void unify(Instruction& instruction) {
  if (instruction.reads_src() && instruction.src == Buffer::input) instruction.src = Buffer::output;
  if (instruction.writes_dst() && instruction.dst == Buffer::input) instruction.dst = Buffer::output;
}

}  // namespace

void unify_in_place(Program& program) {
  if (!program.spec.in_place || program.input.empty() || program.output.empty()) return;
  auto kept = std::uint32_t{0};
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round) {
    auto const begin = program.round_begin[round], end = program.round_begin[round + 1];
    program.round_begin[round] = kept;
    for (auto i = begin; i < end; ++i) {
      auto instruction = program.instructions[i];
      unify(instruction);
      if (!copies_onto_itself(instruction)) program.instructions[kept++] = instruction;
    }
  }
  program.round_begin.back() = kept;
  program.instructions.resize(kept);
}

}  // namespace chorus::plan
