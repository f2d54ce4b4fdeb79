// A default assignment for tests of shards, which they change as needed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "http/api/parameters/parameters.hpp"

namespace chorus::parameters::testing {

// A shard of a whole parameter "w" of f32, which sums pushes in the order of their arrival.
inline api::ShardAssignment plain(std::vector<std::uint64_t> shape) {
  api::ShardAssignment assignment;
  assignment.parameter.name = "w";
  assignment.parameter.dtype = "f32";
  assignment.parameter.reduce = "sum";
  assignment.parameter.nonfinite = "accept";
  assignment.parameter.shape = std::move(shape);
  assignment.end = 1;
  for (auto const dimension : assignment.parameter.shape) assignment.end *= dimension;
  return assignment;
}

}  // namespace chorus::parameters::testing
