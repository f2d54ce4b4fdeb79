#include <algorithm>

#include "collectives/plan/passes/passes.hpp"
#include "collectives/plan/positions.hpp"

namespace chorus::plan {

void name_ranks(Program& program, Spec const& spec) {
  program.rank = rank_at_position(spec, program.rank);
  program.spec = spec;
  if (spec.by_position.empty()) return;
  for (auto& i : program.instructions)
    if (i.op == Opcode::send || i.receives()) i.peer = spec.by_position[i.peer];
  for (auto& channel : program.channels) channel.peer = spec.by_position[channel.peer];
  std::sort(program.channels.begin(), program.channels.end(),
            [](Channel const& a, Channel const& b) { return a.peer < b.peer; });
}

}  // namespace chorus::plan
