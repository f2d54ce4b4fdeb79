// The placement of a parameter: the owners of its shards, as the coordinator reported them.
#pragma once

#include <memory>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "http/api/parameters/parameters.hpp"

namespace chorus::parameters {

// An immutable value.
struct Placement {
  api::Parameter parameter;
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 1;
  std::vector<api::ParameterEndpoint> owners;  // by shard; their elements are in order and without gaps

  [[nodiscard]] std::uint64_t bytes() const { return elements * element_bytes(dtype); }
  // False if a shard ends within a row.
  [[nodiscard]] bool has_whole_rows() const;
  [[nodiscard]] static http::Checked<std::shared_ptr<Placement const>> from(api::Parameter parameter);
};
using PlacementPtr = std::shared_ptr<Placement const>;

}  // namespace chorus::parameters
