// The tensors of one call with a list, as they were when the call came, and the portions in which they travel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/core/op.hpp"
#include "collectives/plan/spec.hpp"
#include "http/json/problem.hpp"
#include "worker/engine/groups/fusion.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

inline constexpr std::size_t max_fused_tensors = 10000;

// Limits the memory of a portion: packed and unpacked tensors exist twice more while they travel, and until the data
// thread has released them. Large tensors are not packed.
inline constexpr engine::FusionLimits fused_portion{.bucket_bytes = 8u << 20, .alone_bytes = 4u << 20};

// True if tensors can be packed for the operation: every rank brings all of them, or gets all of them.
[[nodiscard]] bool takes_fused(Op op);

// An operation on a list, and who takes part.
struct FusedCall {
  Op op = Op::all_reduce;
  std::uint32_t ranks = 1;
  plan::Rank rank = 0;
};

// Shared, because it holds the tensors.
class FusedList {
 public:
  // At least one name. Problems name the tensor at /tensors/{i}: unknown_tensor, busy, invalid_field if dtypes or
  // devices differ, rows do not divide by the ranks where they have to, or a client's region cannot take the result.
  [[nodiscard]] static http::Checked<std::shared_ptr<FusedList const>> make(FusedCall call,
                                                                            std::vector<std::string> const& names,
                                                                            tensors::Store const& store);

  [[nodiscard]] FusedCall const& call() const { return call_; }
  [[nodiscard]] std::vector<tensors::Tensor> const& tensors() const { return tensors_; }
  // Blocks that the whole of every tensor has, all of one size: as many as ranks, or one in operations without blocks.
  [[nodiscard]] std::uint32_t blocks() const { return has_blocks(call_.op) ? call_.ranks : 1; }
  // Bytes of the whole of a tensor, of which this rank has one block before an all_gather or after a reduce_scatter.
  [[nodiscard]] std::uint64_t whole_bytes(tensors::Tensor const& tensor) const;
  // Size and shape of the tensor's next version.
  [[nodiscard]] std::uint64_t result_bytes(tensors::Tensor const& tensor) const;
  [[nodiscard]] tensors::Shape result_shape(tensors::Tensor const& tensor) const;
  [[nodiscard]] Dtype dtype() const { return tensors_.front().dtype; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Hash of names and sizes in their order; not 0.
  [[nodiscard]] std::uint64_t agreement() const { return agreement_; }

  // At least one. Portions follow from the sizes alone, so all ranks that agree on those have the same. Pieces are
  // indices of tensors, and have the sizes of wholes; empty tensors are in no piece.
  [[nodiscard]] std::vector<engine::FusionBucket> const& portions() const { return portions_; }
  // Sum of the versions of the portion's tensors; the first portion includes the empty tensors.
  [[nodiscard]] std::uint64_t version(std::size_t portion) const;

 private:
  FusedList(FusedCall call, std::vector<tensors::Tensor> tensors);
  [[nodiscard]] std::vector<engine::FusionBucket> divide() const;

  FusedCall const call_;
  std::vector<tensors::Tensor> tensors_;
  std::vector<engine::FusionBucket> portions_;
  std::uint64_t bytes_ = 0;
  std::uint64_t agreement_ = 0;
};

// Indices of the tensors whose next versions a portion makes, in the order of the list: its pieces and, for the first
// portion, the empty tensors.
[[nodiscard]] std::vector<std::size_t> tensors_of(FusedList const& list, std::size_t portion);

// For messages: "bias", "bias and 49 more".
[[nodiscard]] std::string names_of(FusedList const& list, std::size_t portion);

}  // namespace chorus::service
