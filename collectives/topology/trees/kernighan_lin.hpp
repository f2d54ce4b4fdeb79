// Divides a cluster in two with little weight between the parts.
//
// Source: Kernighan, Lin, "An Efficient Heuristic Procedure for Partitioning Graphs", 1970.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// Chooses `take` of the members, not the root, such that exchanges of pairs cannot reduce the weight between them and
// the other members; ascending. weights is symmetric and not negative; root is a member; members are ascending; 1 <=
// take < members. Deterministic. In clusters of more than 64 only the most promising pairs are tried.
[[nodiscard]] std::vector<std::uint32_t> cut_off(SquareMatrix const& weights, std::span<std::uint32_t const> members,
                                                 std::uint32_t root, std::size_t take);

}  // namespace chorus::topology
