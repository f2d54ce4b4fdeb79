// The cost of a plan without programs and without a clock: alpha-beta-gamma folded over what the rounds say.
//
//   T = sum over rounds of max over ranks of (alpha + min(b, segment) beta, and gamma where the receiver reduces)
//       + max over ports of the sum of (b - min(b, segment)) beta
//
// over messages of b bytes: the first segments climb from round to round, and the rest follows them through the busiest
// port. Exact where rounds wait for each other and all ranks do alike, as in rings and exchanges of pairs. Where ranks
// share a host's cores or an uplink, a round takes at least what its messages take of them, groups being taken for
// equally busy. What overlaps without being in the same round is not seen: simulate() does.
#pragma once

#include <cstdint>

#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Instructions that one fold looks at, about. Plans that have more ranks times rounds are sampled: the first, the last
// and the root, and others that stand evenly but at no regular distance; of very many rounds, some. A round in which
// none of the sampled ranks acts costs what its neighbours cost.
inline constexpr std::uint64_t folded_instructions_max = 8192;

// Requires that the algorithm accepts the spec and that spec.ranks are the network's.
[[nodiscard]] Cost fold(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                        std::uint64_t elements, std::size_t element_bytes,
                        std::uint64_t budget = folded_instructions_max);

}  // namespace chorus::model
