// Traffic: messages and chunks that a rank sends and receives in a plan, counted from built programs.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::algorithms {

struct Traffic {
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint32_t busiest_round = 0;  // most messages sent, or received, in one round
  std::uint32_t steps = 0;          // rounds in which the rank sends or receives
  std::vector<plan::Rank> sent_to;  // one entry per message, in order
};

[[nodiscard]] Traffic traffic(plan::Program const& program);

// Returns the program of `rank`; fills in spec.algorithm. The algorithm accepts the spec.
[[nodiscard]] plan::Program built(plan::Algorithm const& algorithm, plan::Spec spec, plan::Rank rank);

// Returns the number of rounds in which any rank sends.
[[nodiscard]] std::uint32_t steps(plan::Algorithm const& algorithm, plan::Spec const& spec);

// Returns the reason why the algorithm refuses the spec, or an empty text if it accepts the spec.
[[nodiscard]] std::string refusal(plan::Algorithm const& algorithm, plan::Spec spec);

}  // namespace chorus::algorithms
