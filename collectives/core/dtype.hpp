// The element types of tensors. Names are those of the REST interface and of safetensors in lower case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus {

// The last two are no types of tensors: an element is a block of codes with a scale
// (docs/reference/float_codes.md).
enum class Dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, int8_block, fp8_block };

inline constexpr std::size_t block_bytes = 256;              // codes, then the scale as f32
inline constexpr std::size_t block_codes = block_bytes - 4;  // one byte each
inline constexpr std::size_t dtypes_count = 14;              // blocks included

// Types of tensors.
inline constexpr std::array all_dtypes{Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64, Dtype::i32,
                                       Dtype::i16, Dtype::i8,  Dtype::u64, Dtype::u32,  Dtype::u16, Dtype::u8};

[[nodiscard]] constexpr std::size_t element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
    case Dtype::u64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::u32:
      return 4;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
    case Dtype::u16:
      return 2;
    case Dtype::i8:
    case Dtype::u8:
      return 1;
    case Dtype::int8_block:
    case Dtype::fp8_block:
      return block_bytes;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_block(Dtype dtype) { return dtype == Dtype::int8_block || dtype == Dtype::fp8_block; }

// Size of an element of a partial sum that is kept in f32. A block has as many f32 as bytes, the last four unused.
[[nodiscard]] constexpr std::size_t wide_bytes(Dtype dtype) {
  return (is_block(dtype) ? block_bytes : 1) * sizeof(float);
}

[[nodiscard]] std::string_view name(Dtype dtype);
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view text);  // "f32"; types of tensors only

}  // namespace chorus
