// What a call between members moves, as far as one member can tell from its own tensor and the call.
#pragma once

#include <cstdint>
#include <optional>

#include "http/api/runs.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// What the member has, or will have.
struct LocalTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  tensors::Shape shape;
  std::uint64_t elements = 0;
  std::uint64_t version = 0;  // 0: it does not exist
};

struct LocalShape {
  plan::Sizes sizes;
  std::optional<ResultPlace> result;  // none: the next version of the tensor, with its shape
  // Of the whole vector; none where the members cannot tell it alike.
  std::optional<std::uint64_t> elements;
};

// Every member has the tensor: with its own rows where it brings or gets a block (all_gather, gather; scatter but on
// the root), and the whole vector otherwise. Without counts all blocks are taken to have as many rows as this one's, or
// the whole to be split evenly; members that disagree fail with plan_mismatch. Problems: invalid_field for counts that
// cannot be, or do not fit the tensor.
[[nodiscard]] http::Checked<LocalShape> shape_local_call(Op op, std::uint32_t ranks, plan::Rank root, plan::Rank rank,
                                                         LocalTensor const& tensor, api::LocalCall const& call);

}  // namespace chorus::service
