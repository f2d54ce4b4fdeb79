// Lossy compression of gradients with error feedback: the client keeps the error and adds it to its next gradient.
// docs/reference/gradient_compression.md has the formats. For parameters of f32, f16 and bf16; gradients are f32 on
// both sides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus::parameters {

enum class Compression : std::uint8_t { f16, bf16, top_k, two_bit, int8 };
inline constexpr std::array all_compressions{Compression::f16, Compression::bf16, Compression::top_k,
                                             Compression::two_bit, Compression::int8};

[[nodiscard]] std::string_view name(Compression compression);  // "top_k"
[[nodiscard]] std::optional<Compression> parse_compression(std::string_view text);

}  // namespace chorus::parameters
