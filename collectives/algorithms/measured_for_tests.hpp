// Measured: counts of messages and chunks in a plan, over the programs of all ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::algorithms {

inline std::vector<plan::Program> programs_of(plan::Algorithm const& algorithm, plan::Spec spec) {
  spec.algorithm = algorithm.name;
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
  return programs;
}

struct Measured {
  Measured(plan::Algorithm const& algorithm, plan::Spec const& spec)
      : programs(programs_of(algorithm, spec)), sent(spec.ranks) {
    std::set<std::size_t> rounds;
    for (auto const& program : programs)
      for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round) count(program, round, rounds);
    steps = static_cast<std::uint32_t>(rounds.size());
  }

  [[nodiscard]] std::uint64_t most() const { return *std::max_element(sent.begin(), sent.end()); }
  [[nodiscard]] std::uint64_t total() const { return std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}); }
  // Number of chunks of the vector.
  [[nodiscard]] std::uint32_t chunks() const { return programs.front().chunks; }
  // True if all ranks send the same amount.
  [[nodiscard]] bool all_send(std::uint64_t amount) const {
    return std::all_of(sent.begin(), sent.end(), [&](std::uint64_t one) { return one == amount; });
  }

  std::vector<plan::Program> programs;
  std::uint32_t steps = 0;  // rounds in which any rank sends
  std::uint64_t messages = 0;
  std::vector<std::uint64_t> sent;  // chunks, by rank
  // In every round every rank sends to at most one rank, and receives from at most one.
  bool one_partner_at_a_time = true;

 private:
  void count(plan::Program const& program, std::size_t round, std::set<std::size_t>& rounds) {
    std::set<plan::Rank> to, from;
    for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i) {
      auto const& instruction = program.instructions[i];
      if (instruction.receives()) from.insert(instruction.peer);
      if (instruction.op != plan::Opcode::send) continue;
      to.insert(instruction.peer);
      rounds.insert(round);
      sent[program.rank] += instruction.chunks;
      ++messages;
    }
    one_partner_at_a_time &= to.size() <= 1 && from.size() <= 1;
  }
};

}  // namespace chorus::algorithms
