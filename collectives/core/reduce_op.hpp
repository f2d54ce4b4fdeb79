// The reductions of two elements to one. `avg` sums, and divides once when an element's reduction is complete.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus {

enum class ReduceOp : std::uint8_t { sum, avg, min, max, prod, band, bor, bxor };

inline constexpr std::array all_reduce_ops{ReduceOp::sum,  ReduceOp::avg,  ReduceOp::min, ReduceOp::max,
                                           ReduceOp::prod, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};

[[nodiscard]] std::string_view name(ReduceOp op);
[[nodiscard]] std::optional<ReduceOp> parse_reduce_op(std::string_view text);

}  // namespace chorus
