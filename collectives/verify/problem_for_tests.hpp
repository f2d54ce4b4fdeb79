// Problem: inputs for every rank of an operation, and the expected outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/sizes/sizes.hpp"
#include "collectives/verify/interpreter_for_tests.hpp"

namespace chorus::verify {

struct Problem {
  // Even blocks; `elements` is that of Sizes. The reduction is avg, and exact.
  Problem(plan::Spec const& spec, std::uint64_t elements);
  // Blocks of these sizes; in all_to_all rank s sends counts[(s + d) % p] elements to rank d.
  Problem(plan::Spec const& spec, std::vector<std::uint64_t> const& counts);

  std::vector<plan::Sizes> sizes;
  std::vector<Interpreter::Numbers> inputs, expected;  // per rank

 private:
  void fill(plan::Spec const& spec);
};

// Returns true if after a run every output is right, and every input is intact that the spec does not overwrite.
[[nodiscard]] bool solves(Interpreter const& interpreter, Problem const& problem, plan::Spec const& spec);

}  // namespace chorus::verify
