// What a plan makes every rank send and receive, counted from the programs as they are built.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::algorithms {

struct Traffic {
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint32_t busiest_round = 0;  // the most messages that it sends or that it receives in one round
  std::uint32_t steps = 0;          // rounds in which it sends or receives
  std::vector<plan::Rank> sent_to;  // in order, one for every message
};

[[nodiscard]] Traffic traffic(plan::Program const& program);

// rank's program; spec.algorithm is filled in. The algorithm accepts the spec.
[[nodiscard]] plan::Program built(plan::Algorithm const& algorithm, plan::Spec spec, plan::Rank rank);

// Over all ranks: the rounds in which anything moves.
[[nodiscard]] std::uint32_t steps(plan::Algorithm const& algorithm, plan::Spec const& spec);

// What is wrong with the spec, in a sentence; empty if the algorithm accepts it.
[[nodiscard]] std::string refusal(plan::Algorithm const& algorithm, plan::Spec spec);

}  // namespace chorus::algorithms
