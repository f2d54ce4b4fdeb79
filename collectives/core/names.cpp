// Names of the enumerations Dtype, ReduceOp and Op, each listed once.
#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/wire_format.hpp"

namespace chorus {
namespace {

constexpr std::array<std::string_view, dtypes_count> dtype_names{
    "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "int8_block", "fp8_block"};
constexpr std::array<std::string_view, all_reduce_ops.size()> reduce_op_names{"sum",  "avg",  "min", "max",
                                                                              "prod", "band", "bor", "bxor"};
constexpr std::array<std::string_view, all_wire_formats.size()> wire_format_names{"bf16", "f16", "int8", "fp8_e4m3"};
constexpr std::array<std::string_view, all_ops.size()> op_names{
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather", "scatter", "all_to_all", "barrier"};

template <class Enum, std::size_t N>
std::optional<Enum> parse(std::array<std::string_view, N> const& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name(Dtype dtype) { return dtype_names[static_cast<std::size_t>(dtype)]; }
std::optional<Dtype> parse_dtype(std::string_view text) {
  auto const dtype = parse<Dtype>(dtype_names, text);
  return dtype && !is_block(*dtype) ? dtype : std::nullopt;
}

std::string_view name(ReduceOp op) { return reduce_op_names[static_cast<std::size_t>(op)]; }
std::optional<ReduceOp> parse_reduce_op(std::string_view text) { return parse<ReduceOp>(reduce_op_names, text); }

std::string_view name(WireFormat format) { return wire_format_names[static_cast<std::size_t>(format)]; }
std::optional<WireFormat> parse_wire_format(std::string_view text) {
  return parse<WireFormat>(wire_format_names, text);
}

std::string_view name(Op op) { return op_names[static_cast<std::size_t>(op)]; }
std::optional<Op> parse_op(std::string_view text) { return parse<Op>(op_names, text); }

}  // namespace chorus
