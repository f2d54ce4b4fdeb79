// Derives the transfers and results of each rank from the shapes of the tensors. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/plan/sizes/rows.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/json/problem.hpp"

namespace chorus::coordinator {

struct RankPart {
  plan::Sizes sizes;
  std::optional<api::RunResult> result;  // empty: the next version, or nothing, as the operation says
};

struct Shapes {
  Op op = Op::all_reduce;
  std::uint32_t root = 0;
  std::string tensor;
  std::optional<std::string> output;
  std::vector<std::uint64_t> counts;  // as in api::CollectiveRequest
  bool in_place = false;
  // Shapes by rank; empty for a rank without the tensor. Dimensions that must agree do agree: all of them or, in
  // all_gather and gather, all but the first.
  std::vector<std::optional<plan::TensorShape>> shapes;
  std::vector<std::uint64_t> versions;
};

struct Shaping {
  std::vector<RankPart> parts;  // by rank
  std::uint64_t elements = 0;   // of the whole vector
  bool uneven = false;
};

// Problems: invalid_field at /counts or /in_place, with the possible values.
[[nodiscard]] http::Checked<Shaping> shape_parts(Shapes const& shapes);

}  // namespace chorus::coordinator
