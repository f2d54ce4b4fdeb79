// Inputs for every rank of an operation, and what every rank must end with.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/sizes.hpp"
#include "collectives/verify/interpreter_for_tests.hpp"

namespace chorus::verify {

struct Problem {
  // `elements` of the whole vector, cut evenly; for all_to_all of each rank's. The reduction is avg, and exact.
  Problem(plan::Spec const& spec, std::uint64_t elements);
  // Blocks of these sizes; in all_to_all rank s sends counts[(s + d) % p] to rank d.
  Problem(plan::Spec const& spec, std::vector<std::uint64_t> const& counts);

  std::vector<plan::Sizes> sizes;
  std::vector<Interpreter::Numbers> inputs, expected;  // per rank

 private:
  void fill(plan::Spec const& spec);
};

// Runs it and tells whether every output is right, and every input intact that the spec does not give up.
[[nodiscard]] bool solves(Interpreter const& interpreter, Problem const& problem, plan::Spec const& spec);

}  // namespace chorus::verify
