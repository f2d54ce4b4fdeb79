// Sizes of a members' call, as far as one member can tell from its own tensor and the call.
#pragma once

#include <cstdint>
#include <optional>

#include "http/api/collectives/runs.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// The member's tensor, or its future tensor.
struct LocalTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  tensors::Shape shape;
  std::uint64_t elements = 0;
  std::uint64_t version = 0;  // 0: does not exist
};

struct LocalShape {
  plan::Sizes sizes;
  std::optional<ResultPlace> result;  // empty: the next version of the tensor, with its shape
  // Size of the whole vector; empty if the members cannot all tell it.
  std::optional<std::uint64_t> elements;
};

// Every member has the tensor: with its own rows if it contributes or gets a block (all_gather, gather; scatter except
// on the root), and the whole vector otherwise. Without counts all blocks are assumed to have as many rows as this one,
// or the whole to be split evenly; members that disagree fail with plan_mismatch. Problems: invalid_field for counts
// that are impossible or do not fit the tensor.
[[nodiscard]] http::Checked<LocalShape> shape_local_call(Op op, std::uint32_t ranks, plan::Rank root, plan::Rank rank,
                                                         LocalTensor const& tensor, api::LocalCall const& call);

}  // namespace chorus::service
