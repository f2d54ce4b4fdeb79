// The placement of a parameter: the owners of its shards, as the coordinator reported them.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "http/api/parameters/parameters.hpp"

namespace chorus::parameters {

// An immutable value.
struct Placement {
  api::Parameter parameter;
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 1;              // 0: rows have none
  std::vector<api::ParameterEndpoint> owners;  // by shard; their elements are in order and without gaps

  [[nodiscard]] std::uint64_t bytes() const { return elements * element_bytes(dtype); }
  // False for a parameter that was deleted, and another one of its name.
  [[nodiscard]] bool is_of_same(Placement const& other) const;
  // False if a shard ends within a row.
  [[nodiscard]] bool has_whole_rows() const;
  // Problem unsupported unless it has.
  [[nodiscard]] std::optional<http::Problem> refuse_rows() const;
  [[nodiscard]] static http::Checked<std::shared_ptr<Placement const>> from(api::Parameter parameter);
};
using PlacementPtr = std::shared_ptr<Placement const>;

// Header field of requests to owners: the uid of the parameter that is meant.
inline constexpr std::string_view uid_field = "Parameter-Uid";

// The problem, unavailable, of a request that was made for a parameter that was deleted since.
[[nodiscard]] http::Problem made_anew(std::string const& name);

}  // namespace chorus::parameters
