// Lossy compression of gradients with error feedback: the client keeps the error and adds it to its next gradient.
// docs/reference/gradient_compression.md has the formats. For parameters of f32, f16 and bf16; gradients are f32 on
// both sides.
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

enum class Compression : std::uint8_t { f16, bf16, top_k, two_bit, int8 };
inline constexpr std::array all_compressions{Compression::f16, Compression::bf16, Compression::top_k,
                                             Compression::two_bit, Compression::int8};

[[nodiscard]] std::string_view name(Compression compression);  // "top_k"
[[nodiscard]] std::optional<Compression> parse_compression(std::string_view text);

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
  // next call. A NaN or an infinity is sent as it is, by top_k before all other elements, and leaves no residual;
  // two_bit has no code for it. Errors: nonfinite (two_bit only); then the residual is unchanged.
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

// The server's decoder, without state. Writes every element of `gradient`; elements that were not sent are 0. Errors:
// length_mismatch, bad_header, bad_index (out of range, not ascending), bad_code (also unused bits that are not 0),
// bad_scale (of int8: negative or not finite); then `gradient` is undefined.
[[nodiscard]] Status decode(Compression compression, std::span<std::byte const> encoded, std::span<float> gradient);

// Returns the most bytes that decode accepts for so many elements: the limit of bodies.
[[nodiscard]] std::uint64_t encoded_bytes_max(Compression compression, std::uint64_t elements);

}  // namespace chorus::parameters
