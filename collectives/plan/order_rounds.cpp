#include <algorithm>

#include "collectives/plan/passes.hpp"

namespace chorus::plan {

void order_rounds(Program& program) {
  auto const at = [&](std::size_t round) { return program.instructions.begin() + program.round_begin[round]; };
  auto const is_send = [](Instruction const& instruction) { return instruction.op == Opcode::send; };
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
    if (!std::is_partitioned(at(round), at(round + 1), is_send))
      std::stable_partition(at(round), at(round + 1), is_send);
}

}  // namespace chorus::plan
