// Collectives that send codes of their elements, see WireFormat: which have bounds, and their sizes. The block of each
// rank is encoded by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/sizes/sizes.hpp"

namespace chorus::plan {

// True if the error of codes that are reduced so has a bound.
[[nodiscard]] constexpr bool has_bound(ReduceOp reduce) { return reduce == ReduceOp::sum || reduce == ReduceOp::avg; }

// What refusals say, with what would be possible: if can_be_compressed(), has_bound() or has_codes() is false.
[[nodiscard]] std::string has_no_codes(Op op);
[[nodiscard]] std::string has_no_bound(ReduceOp reduce);
inline constexpr std::string_view formats_of_dtypes =
    "f32 and f64 have bf16, f16, int8 and fp8_e4m3, f16 and bf16 int8 and fp8_e4m3";
inline constexpr std::string_view formats_between_groups =
    "between groups f32 and f64 have bf16, f16, int8 and fp8_e4m3, and other dtypes none";
[[nodiscard]] inline std::string_view formats_of(Compression const& compression) {
  return compression.between ? formats_between_groups : formats_of_dtypes;
}

// True if the dtype has the format, between groups of ranks or everywhere.
[[nodiscard]] constexpr bool has_codes(Dtype dtype, Compression const& compression) {
  bool const is_wide = dtype == Dtype::f32 || dtype == Dtype::f64;
  return has_format(dtype, compression.format) && (is_wide || !compression.between);
}

// Returns the format of the codes that an algorithm sends; nothing if it sends elements.
[[nodiscard]] inline std::optional<WireFormat> format_sent(std::optional<Compression> const& compression,
                                                           Algorithm const& algorithm) {
  if (!compression || (compression->between && algorithm.coded_from == nullptr)) return std::nullopt;
  return compression->format;
}

// Returns the elements of each rank's block; nothing for operations without blocks. Not for all_to_all with counts.
[[nodiscard]] std::vector<std::uint64_t> blocks_of(Op op, std::uint32_t ranks, Sizes const& sizes);

// Returns the number of elements of the carrier for the whole vector.
[[nodiscard]] std::uint64_t carriers_of(WireFormat format, Op op, std::uint32_t ranks, Sizes const& sizes);
// Returns the size of the codes of the whole vector.
[[nodiscard]] inline std::uint64_t wire_bytes_of(WireFormat format, Op op, std::uint32_t ranks, Sizes const& sizes) {
  return carriers_of(format, op, ranks, sizes) * element_bytes(carrier_of(format));
}

}  // namespace chorus::plan
