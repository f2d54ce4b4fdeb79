#include <algorithm>

#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {

void order_rounds(Program& program) {
  std::vector<Instruction> others;
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round) {
    others.clear();
    auto next = program.round_begin[round];
    for (auto i = next; i < program.round_begin[round + 1]; ++i) {
      auto const& instruction = program.instructions[i];
      if (instruction.op == Opcode::send)
        program.instructions[next++] = instruction;
      else
        others.push_back(instruction);
    }
    std::copy(others.begin(), others.end(), program.instructions.begin() + next);
  }
}

}  // namespace chorus::plan
