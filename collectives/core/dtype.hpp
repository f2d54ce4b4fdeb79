// The element types of tensors. Names are those of the REST interface and of safetensors in lower case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus {

enum class Dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8 };

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
  }
  return 0;
}

[[nodiscard]] std::string_view name(Dtype dtype);
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view text);  // "f32"; nothing for any other text

}  // namespace chorus
