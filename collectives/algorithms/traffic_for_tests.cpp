#include "collectives/algorithms/traffic_for_tests.hpp"

#include <algorithm>

namespace chorus::algorithms {

using plan::Opcode, plan::Program, plan::Rank, plan::Spec;

Traffic traffic(Program const& program) {
  Traffic traffic;
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round) {
    std::uint32_t sent = 0, received = 0;
    for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i) {
      auto const& instruction = program.instructions[i];
      if (instruction.op == Opcode::send) {
        ++sent;
        traffic.chunks_sent += instruction.chunks;
        traffic.sent_to.push_back(instruction.peer);
      } else if (instruction.receives()) {
        ++received;
        traffic.chunks_received += instruction.chunks;
      }
    }
    traffic.messages_sent += sent;
    traffic.busiest_round = std::max({traffic.busiest_round, sent, received});
    traffic.steps += sent + received > 0;
  }
  return traffic;
}

Program built(plan::Algorithm const& algorithm, Spec spec, Rank rank) {
  spec.algorithm = algorithm.name;
  return plan::build(algorithm, spec, rank).value();
}

std::uint32_t steps(plan::Algorithm const& algorithm, Spec const& spec) {
  std::vector<bool> busy;
  for (Rank rank = 0; rank < spec.ranks; ++rank) {
    auto const program = built(algorithm, spec, rank);
    busy.resize(program.round_begin.size());
    for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
      for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
        if (program.instructions[i].op == Opcode::send) busy[round] = true;
  }
  return static_cast<std::uint32_t>(std::count(busy.begin(), busy.end(), true));
}

std::string refusal(plan::Algorithm const& algorithm, Spec spec) {
  spec.algorithm = algorithm.name;
  auto const program = plan::build(algorithm, spec, 0);
  return program.has_error() ? program.error().detail : std::string{};
}

}  // namespace chorus::algorithms
