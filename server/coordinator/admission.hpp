// Admission: before a byte moves, every rank's tensor is compared with every other's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "http/api/tensors.hpp"
#include "http/client.hpp"
#include "server/coordinator/shaping.hpp"

namespace chorus::coordinator {

// What one rank holds under the name, as its worker's header fields say.
struct RankTensor {
  std::uint32_t rank = 0;
  std::string worker;
  std::string dtype;
  std::string shape;           // "4096,1024"
  std::string device = "cpu";  // of several parts all of them: "cuda:0,cuda:1"
  std::uint64_t version = 0;   // of several parts the sum
  std::uint32_t parts = 0;     // several tensors of the name: tensor/0 ... tensor/{parts-1}; 0: it is one tensor

  bool operator==(RankTensor const&) const = default;
};

// What is to be done with them.
struct AdmissionQuestion {
  Op op = Op::all_reduce;
  std::string tensor;
  std::optional<std::string> output;  // the tensor that takes the results; none: the same
  std::uint32_t root = 0;
  std::vector<std::uint64_t> counts;  // as in api::CollectiveRequest
  ReduceOp reduce = ReduceOp::sum;
  bool in_place = false;
};

// Whether this rank must have the tensor: in broadcast and scatter out of place only the root must.
[[nodiscard]] bool needs_tensor(AdmissionQuestion const& question, std::uint32_t rank);

struct Admitted {
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;  // of the first rank that brings a tensor
  std::uint64_t elements = 0;        // of the whole vector: see plan::Sizes
  std::uint64_t bytes = 0;
  bool uneven = false;                  // blocks of different sizes
  std::vector<std::uint64_t> versions;  // by rank; ranks may stand at different versions; 0 without a tensor
  std::vector<RankPart> parts;          // by rank
  std::vector<std::uint32_t> tensors;   // by rank: RankTensor::parts
  std::vector<std::optional<std::string>> devices;  // by rank; nothing without a tensor
  std::uint64_t contributions = 0;                  // tensors of all ranks together, if any rank has several
};

// Whether some ranks have tensors, and all of these lie on GPUs.
[[nodiscard]] bool lies_on_gpus(Admitted const& admitted);

// The answer to HEAD /v1/tensors/{name}. Problems: unknown_tensor, busy, worker_unreachable for an answer that makes no
// sense; all name the rank.
[[nodiscard]] http::Checked<RankTensor> read_tensor(std::uint32_t rank, std::string const& worker,
                                                    std::string const& tensor, http::Answer const& answer);

// Whether ranks may bring several tensors of one name to this operation.
[[nodiscard]] bool takes_parts(AdmissionQuestion const& question);

// What GET /v1/tensors?prefix={tensor}/ has found: tensor/0, tensor/1, ... as many as there are without a gap.
// Problems: unknown_tensor if there is none, mismatch if they are not alike; both name the rank.
[[nodiscard]] http::Checked<RankTensor> read_parts(std::uint32_t rank, std::string const& worker,
                                                   std::string const& tensor, api::TensorList const& found);

// One or more ranks, in rank order, wherever their tensors lie; nothing for a rank that has no such tensor and needs
// none. What most ranks have is taken to be meant (the lowest rank's, if it is a draw); ranks that differ are named
// with the field and both values. Problems: mismatch; invalid_field where the reduction does not exist for the dtype,
// the shape is none, or counts do not fit it.
[[nodiscard]] http::Checked<Admitted> admit(AdmissionQuestion const& question,
                                            std::span<std::optional<RankTensor> const> ranks);

// Several ranks' refusals as one: the first one's code and text, everybody's rank and text.
[[nodiscard]] http::Problem join_refusals(std::span<http::Problem const> refusals);

}  // namespace chorus::coordinator
