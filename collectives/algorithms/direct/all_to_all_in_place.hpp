// The first step of every all_to_all in place. Without it an arriving block would overwrite a block that has not left,
// and two ranks that exchange blocks would wait for each other. So a rank first copies the blocks that it will send.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Returns true if round 0 is set_aside().
[[nodiscard]] inline bool sets_aside(plan::Spec const& spec) {
  return spec.op == Op::all_to_all && spec.in_place && spec.ranks > 1;
}

// Copies the blocks for other ranks to the scratch chunks of the same numbers, those for the next ranks first.
inline void set_aside(plan::Spec const& spec, plan::Rank rank, plan::Sink& sink) {
  for (std::uint32_t i = 1; i < spec.ranks; ++i) {
    auto const block = (rank + i) % spec.ranks;
    sink.copy(plan::input(block), plan::scratch(block));
  }
}

// Returns the slice from which the block for `to` is sent.
[[nodiscard]] inline plan::Slice outgoing(plan::Spec const& spec, plan::Rank to) {
  return sets_aside(spec) ? plan::scratch(to) : plan::input(to);
}

}  // namespace chorus::algorithms
