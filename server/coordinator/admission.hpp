// Admission: before a byte moves, every rank's tensor is compared with every other's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "http/client.hpp"

namespace chorus::coordinator {

// What one rank holds under the name, as its worker's header fields say.
struct RankTensor {
  std::uint32_t rank = 0;
  std::string worker;
  std::string dtype;
  std::string shape;  // "4096,1024"
  std::string device = "cpu";
  std::uint64_t version = 0;
};

struct Admitted {
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> versions;  // by rank; ranks may stand at different versions
};

// The answer to HEAD /v1/tensors/{name}. Problems: unknown_tensor, busy, worker_unreachable for an answer that makes no
// sense; all name the rank.
[[nodiscard]] http::Checked<RankTensor> read_tensor(std::uint32_t rank, std::string const& worker,
                                                    std::string const& tensor, http::Answer const& answer);

// One or more ranks, in rank order. What most ranks have is taken to be meant (the lowest rank's, if it is a draw);
// ranks that differ are named with the field and both values. Problems: mismatch; invalid_field where the reduction
// does not exist for the dtype, or the shape is none.
[[nodiscard]] http::Checked<Admitted> admit(std::string const& tensor, ReduceOp reduce,
                                            std::span<RankTensor const> ranks);

// Several ranks' refusals as one: the first one's code and text, everybody's rank and text.
[[nodiscard]] http::Problem join_refusals(std::span<http::Problem const> refusals);

}  // namespace chorus::coordinator
