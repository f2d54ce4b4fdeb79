// fold(): the cost of a plan without programs and without a clock: alpha, beta and gamma summed over the rounds.
//
//   T = sum over rounds of max over ranks of (alpha + min(b, segment) beta, and gamma where the receiver reduces)
//       + max over ports of the sum of (b - min(b, segment)) beta
//
// over messages of b bytes: the first segments climb from round to round, and the rest follows them through the busiest
// port. Exact if rounds wait for each other and all ranks do the same, as in rings and exchanges of pairs. If ranks
// share a host's cores or an uplink, a round takes at least the time of its messages there; groups are assumed to be
// equally busy. Overlap between rounds is not modelled: simulate() does that.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/core/wire_format.hpp"
#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Approximate number of instructions that one fold examines. Larger plans are sampled: the first rank, the last one,
// the root, and others that are spread evenly but at no regular distance; and some of very many rounds. A round without
// instructions of the sampled ranks costs as much as its neighbours.
inline constexpr std::uint64_t folded_instructions_max = 8192;

// Returns the cost. Requires that the algorithm accepts the spec and that the network has spec.ranks ranks. `codes`: as
// in simulate().
[[nodiscard]] Cost fold(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                        std::uint64_t elements, std::size_t element_bytes,
                        std::uint64_t budget = folded_instructions_max, std::optional<WireFormat> codes = std::nullopt);

}  // namespace chorus::model
