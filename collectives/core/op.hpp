// The collective operations.
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

// Whether elements are combined on the way.
[[nodiscard]] constexpr bool reduces(Op op) {
  return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter;
}
// Whether one rank, the root, holds what the others get or gets what the others hold.
[[nodiscard]] constexpr bool is_rooted(Op op) {
  return op == Op::reduce || op == Op::broadcast || op == Op::gather || op == Op::scatter;
}
// Whether the vector consists of p blocks, one for each rank, in rank order. In a barrier a block is one byte: a rank's
// sign of having arrived, which all ranks gather.
[[nodiscard]] constexpr bool has_blocks(Op op) {
  return op != Op::all_reduce && op != Op::reduce && op != Op::broadcast;
}
[[nodiscard]] std::optional<Op> parse_op(std::string_view text);

}  // namespace chorus
