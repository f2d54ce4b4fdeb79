// How much a run moves: what a plan leaves open. Beside the plan's spec it is all that a rank needs to find its
// elements.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/layout.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::plan {

// Even: `elements` of the whole vector, with its blocks as equal as can be (Layout). In all_to_all it is what every
// rank sends, and what it gets is p times its own block.
//
// Uneven, for operations that have blocks: one count per block, in the order of ranks, the same list on all of them. In
// all_to_all `counts` is what this rank sends to each, `receive_counts` what it gets from each; `elements` is not used.
struct Sizes {
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> receive_counts;  // all_to_all with counts only
  friend bool operator==(Sizes const&, Sizes const&) = default;
};

// Where the chunks of a rank's two buffers lie. The same vector on both sides, but for all_to_all.
struct Layouts {
  Layout input, output;
};

// Errors: PlanErrc::bad_parameter: counts where there are no blocks, of another number than ranks, or too large for 63
// bits; unequal ones where the program needs equal ones, or in place in all_to_all.
[[nodiscard]] Status check(Program const& program, Sizes const& sizes);

// check(program, sizes) is ok.
[[nodiscard]] Layouts layouts(Program const& program, Sizes const& sizes);

// Elements of the memory that the program addresses: see memory() in holding.hpp.
[[nodiscard]] std::uint64_t input_elements(Program const& program, Layouts const& layouts);
[[nodiscard]] std::uint64_t output_elements(Program const& program, Layouts const& layouts);

}  // namespace chorus::plan
