// Formats of floats in fewer bytes: docs/reference/float_codes.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"

namespace chorus {

enum class WireFormat : std::uint8_t { bf16, f16, int8, fp8_e4m3 };
inline constexpr std::array all_wire_formats{WireFormat::bf16, WireFormat::f16, WireFormat::int8, WireFormat::fp8_e4m3};

[[nodiscard]] std::string_view name(WireFormat format);                            // "int8"
[[nodiscard]] std::optional<WireFormat> parse_wire_format(std::string_view text);  // nothing for any other text

// Returns the type of the codes, which can be added: f16, bf16 or blocks.
[[nodiscard]] constexpr Dtype carrier_of(WireFormat format) {
  switch (format) {
    case WireFormat::bf16:
      return Dtype::bf16;
    case WireFormat::f16:
      return Dtype::f16;
    case WireFormat::int8:
      return Dtype::int8_block;
    case WireFormat::fp8_e4m3:
      break;
  }
  return Dtype::fp8_block;
}

// Operations whose collectives can send codes.
[[nodiscard]] constexpr bool can_be_compressed(Op op) {
  return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter || op == Op::all_gather ||
         op == Op::broadcast;
}

// f32 and f64 have all formats, f16 and bf16 those of one byte.
[[nodiscard]] constexpr bool has_format(Dtype dtype, WireFormat format) {
  bool const is_half = dtype == Dtype::f16 || dtype == Dtype::bf16;
  return dtype == Dtype::f32 || dtype == Dtype::f64 || (is_half && is_block(carrier_of(format)));
}

// Number of elements of the carrier for so many elements; of blocks the last one may be used in part.
[[nodiscard]] constexpr std::uint64_t carriers(WireFormat format, std::uint64_t elements) {
  if (!is_block(carrier_of(format))) return elements;
  return elements / block_codes + (elements % block_codes != 0 ? 1 : 0);
}

}  // namespace chorus
