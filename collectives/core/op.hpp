// The collective operations and their properties.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus {

enum class Op : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  gather,
  scatter,
  all_to_all,
  barrier
};

inline constexpr std::array all_ops{Op::all_reduce, Op::reduce,  Op::broadcast,  Op::all_gather, Op::reduce_scatter,
                                    Op::gather,     Op::scatter, Op::all_to_all, Op::barrier};

[[nodiscard]] std::string_view name(Op op);

// Returns true if the operation combines elements.
[[nodiscard]] constexpr bool reduces(Op op) {
  return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter;
}
// Returns true if one rank, the root, is the only source or the only destination of the data.
[[nodiscard]] constexpr bool is_rooted(Op op) {
  return op == Op::reduce || op == Op::broadcast || op == Op::gather || op == Op::scatter;
}
// Returns true if the vector consists of p blocks, one for each rank, in rank order. A barrier is an all_gather of one
// byte per rank, the sign that the rank has arrived.
[[nodiscard]] constexpr bool has_blocks(Op op) {
  return op != Op::all_reduce && op != Op::reduce && op != Op::broadcast;
}
[[nodiscard]] std::optional<Op> parse_op(std::string_view text);

}  // namespace chorus
