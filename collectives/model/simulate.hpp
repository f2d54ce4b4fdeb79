// A plan in virtual time, for what folding cannot see: who waits for whom, and what messages share on their way.
//
// Costs are those of cost.hpp. Beyond them: all ranks of a host share its network card and its cores, and the groups of
// every level their uplink, as far as the constants limit them. Messages are followed one by one, in the order of the
// rounds and in each round of the receiving ranks, and each as a whole: when its first segment is there and when its
// last, so that a long message costs no more work here than a short one. Waiting for a buffer that is still being read
// is left out.
#pragma once

#include <string>

#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

struct Simulation {
  Cost cost;
  std::string
      bottleneck;  // "port of rank 0 (send)", "nic of host r0/h1 (receive)", "rack uplink of rack r3 (send)", ...
};

// Rounds are generated one after the other, and no more than one is kept: memory grows with the messages of a round,
// time with all of them (60 ns each, or 30 where all ranks do the same, as in a ring). Requires that the algorithm
// accepts the spec, that spec.ranks are the network's, and that both ends of a message stand in the same round, which
// tests hold all algorithms to.
[[nodiscard]] Simulation simulate(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                                  std::uint64_t elements, std::size_t element_bytes);

// How much there is to do: calls of emit(), of which each takes 10 to 100 ns.
[[nodiscard]] std::uint64_t simulated_rounds(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::model
