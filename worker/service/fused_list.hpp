// The tensors of one call that takes many, as they were when it came, and the portions in which they travel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/core/op.hpp"
#include "collectives/plan/spec.hpp"
#include "http/problem.hpp"
#include "worker/engine/fusion.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

inline constexpr std::size_t max_fused_tensors = 10000;

// What is packed and unpacked is there twice more while it travels, and a little longer, until the data thread has let
// go of it: so much of it at once. A tensor that is large by itself goes without being packed.
inline constexpr engine::FusionLimits fused_portion{.bucket_bytes = 8u << 20, .alone_bytes = 4u << 20};

// Whether tensors can be packed for it: what arrives has the shape of what was sent.
[[nodiscard]] bool takes_fused(Op op);

// A value that is shared, for it holds the tensors.
class FusedList {
 public:
  // At least one name. Problems name the tensor at /tensors/{i}: unknown_tensor, busy, invalid_field where dtypes or
  // devices differ.
  [[nodiscard]] static http::Checked<std::shared_ptr<FusedList const>> make(std::vector<std::string> const& names,
                                                                            plan::Rank rank,
                                                                            tensors::Store const& store);

  [[nodiscard]] std::vector<tensors::Tensor> const& tensors() const { return tensors_; }
  [[nodiscard]] Dtype dtype() const { return tensors_.front().dtype; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Over names and sizes, in their order; not 0.
  [[nodiscard]] std::uint64_t agreement() const { return agreement_; }

  // At least one. They follow from sizes alone: the same on all ranks that agree. Pieces are indices of tensors; those
  // that are empty are in none.
  [[nodiscard]] std::vector<engine::FusionBucket> const& portions() const { return portions_; }
  // Of a portion's tensors the sum; those of the first one with the empty ones'.
  [[nodiscard]] std::uint64_t version(std::size_t portion) const;

 private:
  explicit FusedList(std::vector<tensors::Tensor> tensors);

  std::vector<tensors::Tensor> tensors_;
  std::vector<engine::FusionBucket> portions_;
  std::uint64_t bytes_ = 0;
  std::uint64_t agreement_ = 0;
};

// Indices of the tensors whose next versions a portion makes, in the order of the list: its pieces, and with the first
// portion the tensors that are empty.
[[nodiscard]] std::vector<std::size_t> tensors_of(FusedList const& list, std::size_t portion);

// For people: "bias", "bias and 49 more".
[[nodiscard]] std::string names_of(FusedList const& list, std::size_t portion);

}  // namespace chorus::service
