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
[[nodiscard]] std::optional<Op> parse_op(std::string_view text);

}  // namespace chorus
