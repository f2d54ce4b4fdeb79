#include "collectives/model/partners.hpp"

#include <algorithm>
#include <vector>

#include "collectives/plan/sink.hpp"

namespace chorus::model {

std::uint32_t partners(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  std::uint32_t most = 0;
  plan::Sink sink;
  for (plan::Rank const rank : {plan::Rank{0}, spec.ranks / 2, spec.ranks - 1}) {
    std::vector<bool> known(spec.ranks);
    for (std::uint32_t round = 0; round < algorithm.rounds(spec, rank); ++round) {
      sink.clear();
      algorithm.emit(spec, rank, round, sink);
      for (auto const& instruction : sink.instructions())
        if (instruction.op == plan::Opcode::send || instruction.receives()) known[instruction.peer] = true;
    }
    most = std::max(most, static_cast<std::uint32_t>(std::ranges::count(known, true)));
  }
  return most;
}

}  // namespace chorus::model
