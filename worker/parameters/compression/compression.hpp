// Gradients in fewer bytes, lossy: what is lost stays with the client and is added to its next gradient (error
// feedback). docs/gradient_compression.md has the formats byte by byte. For parameters of f32, f16 and bf16; gradients
// are f32 on both sides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::parameters {

enum class Compression : std::uint8_t { f16, bf16, top_k, two_bit };
inline constexpr std::array all_compressions{Compression::f16, Compression::bf16, Compression::top_k,
                                             Compression::two_bit};

[[nodiscard]] std::string_view name(Compression compression);  // "top_k"
[[nodiscard]] std::optional<Compression> parse_compression(std::string_view text);

struct CompressionSettings {
  Compression compression = Compression::f16;
  double fraction = 0.01;  // top_k: of the elements that are sent, at least one; in (0, 1]
  float threshold = 0.5F;  // two_bit: the one magnitude that is sent; positive and finite
};

// The client's side of one parameter: the residual of every element. Movable, for one thread.
class GradientEncoder {
 public:
  // Errors: bad_settings.
  [[nodiscard]] static Result<GradientEncoder> make(CompressionSettings settings, std::uint64_t elements);

  // The bytes of gradient + residual, for the elements from first_element on: of one shard's part. What they do not say
  // becomes the residual, so a push that is repeated repeats these bytes and does not encode anew; they are valid until
  // the next call. A NaN or an infinity is sent as it is, by top_k before all others, and leaves no residual; two_bit
  // has no code for it. Errors: nonfinite (of two_bit); then the residual is as it was.
  [[nodiscard]] Result<std::span<std::byte const>> encode(std::uint64_t first_element, std::span<float const> gradient);

  // What has not been sent yet, per element. To be kept with the client's own checkpoint, and restored.
  [[nodiscard]] std::span<float> residual() { return residual_; }

 private:
  GradientEncoder(CompressionSettings settings, std::uint64_t elements);
  void encode_halves(std::span<float const> gradient, std::span<float> residual);
  void encode_top_k(std::span<float const> gradient, std::span<float> residual);
  void encode_two_bit(std::span<float const> gradient, std::span<float> residual);

  CompressionSettings settings_;
  std::vector<float> residual_;
  std::vector<float> magnitudes_;
  std::vector<std::byte> encoded_;
};

// The server's side, without state. Writes every element of `gradient`, those that were not sent as 0. Refuses whatever
// encode does not write: errors length_mismatch, bad_header, bad_index (out of range, not ascending), bad_code (also
// unused bits that are not 0); then `gradient` is undefined.
[[nodiscard]] Status decode(Compression compression, std::span<std::byte const> encoded, std::span<float> gradient);

// The most bytes that decode accepts for so many elements: a limit for bodies.
[[nodiscard]] std::uint64_t encoded_bytes_max(Compression compression, std::uint64_t elements);

}  // namespace chorus::parameters
