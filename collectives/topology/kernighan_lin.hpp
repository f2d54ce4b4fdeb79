// Cutting a cluster in two with little weight between the parts.
//
// Source: Kernighan, Lin, "An Efficient Heuristic Procedure for Partitioning Graphs", 1970.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// `take` of the members, without the root, such that the weight between them and the other members is as small as
// exchanges of pairs make it; ascending. weights is symmetric and not negative; root is a member; members are
// ascending; 1 <= take < members. Deterministic. In clusters of more than 64 only the most promising pairs are looked
// at.
[[nodiscard]] std::vector<std::uint32_t> cut_off(SquareMatrix const& weights, std::span<std::uint32_t const> members,
                                                 std::uint32_t root, std::size_t take);

}  // namespace chorus::topology
