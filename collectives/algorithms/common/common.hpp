// Helpers shared by the algorithms of several families.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"

namespace chorus::algorithms {

// For Algorithm::check: the operation is all_reduce, and there is no shape. Errors: PlanErrc::unsupported_operation,
// PlanErrc::bad_parameter.
[[nodiscard]] Status only_all_reduce(plan::Spec const& spec);

// For Algorithm::check: the operation is one of `ops`. The error names them.
[[nodiscard]] Status check_among(plan::Spec const& spec, std::span<Op const> ops);
template <Op... ops>
[[nodiscard]] Status only(plan::Spec const& spec) {
  constexpr std::array list{ops...};
  return check_among(spec, list);
}

// For Algorithm::check of algorithms without shapes. Errors: PlanErrc::bad_parameter.
[[nodiscard]] Status no_shape(plan::Spec const& spec);

// Returns PlanErrc::bad_parameter with the shape of the spec and the expected one.
[[nodiscard]] Error wrong_shape(plan::Spec const& spec, std::string_view expected);

// Returns text like "2,3,4"; a long shape is cut off.
[[nodiscard]] std::string to_text(plan::Shape const& shape);

// For Algorithm::summation.
[[nodiscard]] inline plan::Summation one_by_one(plan::Spec const&) { return plan::Summation::one_by_one; }

// For Algorithm::scratch_chunks.
[[nodiscard]] std::uint32_t no_scratch(plan::Spec const& spec, plan::Rank rank);

// Returns the chunks of a range in a buffer.
[[nodiscard]] constexpr plan::Slice slice(plan::Buffer buffer, plan::ChunkRange range) {
  return {buffer, range.first, range.count};
}

// Emits the only round of a group of one, whose vector is one chunk. The input is the complete result, so the copy is
// not final, and in place it disappears.
void emit_alone(plan::Sink& sink);

// For Algorithm::check of several operations without shapes: only() and no_shape().
template <Op... ops>
[[nodiscard]] Status only_without_shape(plan::Spec const& spec) {
  auto const status = only<ops...>(spec);
  return status.has_error() ? status : no_shape(spec);
}

// For Algorithm::chunks: one chunk for every rank.
[[nodiscard]] std::uint32_t chunk_per_rank(plan::Spec const& spec);
// For Algorithm::chunks: one chunk for every rank in operations with blocks, otherwise one chunk.
[[nodiscard]] std::uint32_t chunk_per_block(plan::Spec const& spec);

}  // namespace chorus::algorithms
