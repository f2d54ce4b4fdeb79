// From the shapes of the ranks' tensors to what each rank moves and ends with. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/plan/rows.hpp"
#include "http/api/runs.hpp"
#include "http/problem.hpp"

namespace chorus::coordinator {

struct RankPart {
  plan::Sizes sizes;
  std::optional<api::RunResult> result;  // none: the next version of the tensor, or nothing, as the operation says
};

struct Shapes {
  Op op = Op::all_reduce;
  std::uint32_t root = 0;
  std::string tensor;
  std::optional<std::string> output;
  std::vector<std::uint64_t> counts;  // as in api::CollectiveRequest
  bool in_place = false;
  // By rank; nothing for a rank without the tensor. Those that must agree do: all of them, or, in all_gather and
  // gather, all dimensions but the first.
  std::vector<std::optional<plan::TensorShape>> shapes;
  std::vector<std::uint64_t> versions;
};

struct Shaping {
  std::vector<RankPart> parts;  // by rank
  std::uint64_t elements = 0;   // of the whole vector
  bool uneven = false;
};

// Problems: invalid_field at /counts or /in_place, with what would be possible.
[[nodiscard]] http::Checked<Shaping> shape_parts(Shapes const& shapes);

}  // namespace chorus::coordinator
