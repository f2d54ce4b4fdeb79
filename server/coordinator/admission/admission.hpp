// Admission: compares the tensors of all ranks before a byte moves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "http/api/tensors/tensors.hpp"
#include "http/client/client.hpp"
#include "server/coordinator/admission/shaping.hpp"

namespace chorus::coordinator {

// A rank's tensor, as the header fields of its worker describe it.
struct RankTensor {
  std::uint32_t rank = 0;
  std::string worker;
  std::string dtype;
  std::string shape;           // "4096,1024"
  std::string device = "cpu";  // several parts: all devices, "cuda:0,cuda:1"
  std::uint64_t version = 0;   // several parts: the sum
  std::uint32_t parts = 0;     // number of tensors tensor/0 ... tensor/{parts-1}; 0: one tensor with this name

  bool operator==(RankTensor const&) const = default;
};

// The operation for which tensors are admitted.
struct AdmissionQuestion {
  Op op = Op::all_reduce;
  std::string tensor;
  std::optional<std::string> output;  // tensor that takes the results; empty: the same
  std::uint32_t root = 0;
  std::vector<std::uint64_t> counts;  // as in api::CollectiveRequest
  ReduceOp reduce = ReduceOp::sum;
  bool in_place = false;
};

// True if this rank must have the tensor: in broadcast and scatter out of place only the root must.
[[nodiscard]] bool needs_tensor(AdmissionQuestion const& question, std::uint32_t rank);

struct Admitted {
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;  // of the first rank with a tensor
  std::uint64_t elements = 0;        // of the whole vector: see plan::Sizes
  std::uint64_t bytes = 0;
  bool uneven = false;                              // blocks of different sizes
  std::vector<std::uint64_t> versions;              // by rank, may differ; 0 without a tensor
  std::vector<RankPart> parts;                      // by rank
  std::vector<std::uint32_t> tensors;               // by rank: RankTensor::parts
  std::vector<std::optional<std::string>> devices;  // by rank; empty without a tensor
  std::uint64_t contributions = 0;                  // number of tensors of all ranks, if any rank has several
};

// True if some ranks have tensors, and all of them are on GPUs.
[[nodiscard]] bool lies_on_gpus(Admitted const& admitted);

// Reads the answer to HEAD /v1/tensors/{name}. Problems, all with the rank: unknown_tensor, busy, worker_unreachable
// for a malformed answer.
[[nodiscard]] http::Checked<RankTensor> read_tensor(std::uint32_t rank, std::string const& worker,
                                                    std::string const& tensor, http::Answer const& answer);

// True if ranks may bring several tensors of one name to this operation.
[[nodiscard]] bool takes_parts(AdmissionQuestion const& question);

// Reads the answer to GET /v1/tensors?prefix={tensor}/: tensor/0, tensor/1, ... up to the first gap. Problems, both
// with the rank: unknown_tensor if there is none, mismatch if they differ.
[[nodiscard]] http::Checked<RankTensor> read_parts(std::uint32_t rank, std::string const& worker,
                                                   std::string const& tensor, api::TensorList const& found);

// Admits the tensors of one or more ranks, in rank order, on any devices; empty for a rank that has no tensor and needs
// none. The value that most ranks have is the expected one, or the lowest rank's in a draw. Problems: mismatch with
// each differing rank, the field and both values; invalid_field if the reduction does not exist for the dtype, the
// shape is malformed, or counts do not fit it.
[[nodiscard]] http::Checked<Admitted> admit(AdmissionQuestion const& question,
                                            std::span<std::optional<RankTensor> const> ranks);

// The rank in texts of problems: "rank 2 ('w2')".
[[nodiscard]] std::string rank_title(std::uint32_t rank, std::string const& worker);
// The problem of one rank, which it names.
[[nodiscard]] http::Problem refusal(std::uint32_t rank, http::ProblemCode code, std::string detail);
// Joins the refusals of several ranks: code of the first one, ranks and texts of all.
[[nodiscard]] http::Problem join_refusals(std::span<http::Problem const> refusals);

}  // namespace chorus::coordinator
