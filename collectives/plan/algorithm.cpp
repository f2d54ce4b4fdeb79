#include "collectives/plan/algorithm.hpp"

namespace chorus::plan {

Summation summation_of(Algorithm const& algorithm, Spec const& spec) {
  constexpr std::uint32_t always_one_by_one = 3, always_exact = 4;
  if (spec.ranks <= always_one_by_one) return Summation::one_by_one;
  if (algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec)) return Summation::one_by_one;
  if (spec.ranks == always_exact) return Summation::in_pairs;
  return algorithm.summation != nullptr ? algorithm.summation(spec) : Summation::any;
}

}  // namespace chorus::plan
