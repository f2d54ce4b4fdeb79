// A plan in virtual time, for effects that folding does not model: ranks that wait for each other, and shared
// resources.
//
// Costs are those of cost.hpp. In addition all ranks of a host share its network card and its cores, and the groups of
// every level their uplink, if the constants limit them. Messages are followed one by one, in the order of the rounds
// and in each round of the receiving ranks, and each as a whole, by the arrival of its first and of its last segment,
// so that a long message costs no more work than a short one. Not modelled: waiting for a buffer that is still being
// read.
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

// Rounds are generated one after the other, and only one is kept: memory grows with the messages of a round, time with
// all of them (60 ns each, or 30 if all ranks do the same, as in a ring). Requires that the algorithm accepts the spec,
// that the network has spec.ranks ranks, and that both ends of a message are in the same round, which tests check for
// all algorithms.
[[nodiscard]] Simulation simulate(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                                  std::uint64_t elements, std::size_t element_bytes);

// Amount of work: calls of emit(), each of which takes 10 to 100 ns.
[[nodiscard]] std::uint64_t simulated_rounds(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::model
