// The client's side of compressed gradients: encodes, with error feedback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/parameters/compression/compression.hpp"

namespace chorus::parameters {

struct CompressionSettings {
  Compression compression = Compression::f16;
  double fraction = 0.01;  // top_k: the part of the elements that is sent, at least one element; in (0, 1]
  float threshold = 0.5F;  // two_bit: the only magnitude that is sent; positive and finite
};

// The client's encoder of one parameter, with the residual of every element. Movable; used by one thread.
class GradientEncoder {
 public:
  // Errors: bad_settings.
  [[nodiscard]] static Result<GradientEncoder> make(CompressionSettings settings, std::uint64_t elements);

  // Encodes gradient + residual for the elements from first_element on, the part of one shard. The error becomes the
  // new residual, so a repeated push must send the same bytes again and not encode again. The bytes are valid until the
  // next call. A NaN or an infinity is sent as it is, by top_k before all other elements, and leaves no residual, also
  // where there are more of them than top_k sends; two_bit has no code for it. Errors: nonfinite (two_bit only); then
  // the residual is unchanged.
  [[nodiscard]] Result<std::span<std::byte const>> encode(std::uint64_t first_element, std::span<float const> gradient);

  // The residual of each element. The client saves it with its own checkpoint, and restores it.
  [[nodiscard]] std::span<float> residual() { return residual_; }

 private:
  GradientEncoder(CompressionSettings settings, std::uint64_t elements);
  void encode_floats(std::span<float const> gradient, std::span<float> residual);
  void encode_top_k(std::span<float const> gradient, std::span<float> residual);
  void encode_two_bit(std::span<float const> gradient, std::span<float> residual);

  CompressionSettings settings_;
  std::vector<float> residual_;
  std::vector<float> magnitudes_;
  std::vector<std::byte> encoded_;
};

}  // namespace chorus::parameters
