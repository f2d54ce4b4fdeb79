// Sizes of a run, which plans do not have. A rank finds its elements by sizes and the plan's spec.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/layout.hpp"

namespace chorus::plan {

// Numbers of elements, in one of two forms:
// - Even: `elements` of the whole vector, whose blocks differ by one element at most (Layout). In all_to_all every rank
//   sends so many elements, and receives p times its own block.
// - Uneven, for operations that have blocks: one count per block, in rank order, the same list on all ranks. In
//   all_to_all the elements that this rank sends to each rank, and in `receive_counts` those that it receives from
//   each. `elements` is not used.
struct Sizes {
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> receive_counts;  // only in all_to_all with counts
  friend bool operator==(Sizes const&, Sizes const&) = default;
};

// Layouts of a rank's two buffers. They are equal except in all_to_all.
struct Layouts {
  Layout input, output;
};

// Checks sizes for a program. Errors: PlanErrc::bad_parameter for counts without blocks, another number of counts than
// ranks, a sum over 63 bits, and unequal counts in a program that needs equal chunks or in an all_to_all in place.
[[nodiscard]] Status check(Program const& program, Sizes const& sizes);

// Returns the layouts of both buffers. check(program, sizes) is ok.
[[nodiscard]] Layouts layouts(Program const& program, Sizes const& sizes);

// Number of elements of the memory that the program addresses: see memory() in holding.hpp.
[[nodiscard]] std::uint64_t input_elements(Program const& program, Layouts const& layouts);
[[nodiscard]] std::uint64_t output_elements(Program const& program, Layouts const& layouts);

}  // namespace chorus::plan
