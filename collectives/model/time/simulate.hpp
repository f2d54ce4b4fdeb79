// simulate(): a plan in virtual time, for effects that fold() does not model: ranks that wait for each other, and
// shared resources.
//
// Costs are those of cost.hpp. In addition all ranks of a host share its network card and its cores, and the ranks of a
// group of any level its uplink, if the constants limit them. Messages are followed one by one, in the order of rounds
// and, within a round, of the receiving ranks. A message is followed as a whole, by the arrival of its first and of its
// last segment, so that a long message needs no more work than a short one. Not modelled: waits for a buffer that is
// still being read.
#pragma once

#include <optional>
#include <string>

#include "collectives/core/wire_format.hpp"
#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

struct Simulation {
  Cost cost;
  // "port of rank 0 (send)", "nic of host r0/h1 (receive)", "rack uplink of rack r3 (send)", ...
  std::string bottleneck;
};

// Returns cost and bottleneck. Rounds are generated one after the other, and only one is kept: memory grows with the
// messages of a round, time with all messages. Requires that the algorithm accepts the spec, that the network has
// spec.ranks ranks, and that both ends of a message are in the same round, which tests check for all algorithms.
// `codes`: format of the run, for a plan that sends codes (Algorithm::coded_from).
[[nodiscard]] Simulation simulate(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                                  std::uint64_t elements, std::size_t element_bytes,
                                  std::optional<WireFormat> codes = std::nullopt);

// Returns the amount of work of simulate(), in rounds of one rank, each of which takes 10 to 100 ns: the number of
// calls of emit(), several times as many where a round has many instructions.
[[nodiscard]] std::uint64_t simulated_rounds(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::model
