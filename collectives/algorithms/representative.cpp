#include "collectives/algorithms/representative.hpp"

#include <algorithm>
#include <numeric>

namespace chorus::algorithms {
namespace {

constexpr std::uint32_t all_roots_up_to = 8;
// Above, a plan takes so long to prove that only the ends of the scale of roots and arities are looked at.
constexpr std::uint32_t all_classes_up_to = 256;

std::vector<plan::Rank> roots_of(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  if (!algorithm.rooted && !is_rooted(op)) return {0};
  std::vector<plan::Rank> roots(ranks);
  std::iota(roots.begin(), roots.end(), 0);
  if (ranks > all_roots_up_to) roots = {0, 1, ranks / 2, ranks - 1};
  if (ranks > all_classes_up_to) roots = {0, ranks - 1};
  return roots;
}

// A chain, the small ones, a larger one, the star, and all ranks at once. Larger ones than p make no other plan.
std::vector<std::uint32_t> arities_of(plan::Algorithm const& algorithm, std::uint32_t ranks) {
  if (!algorithm.uses_arity) return {2};
  if (ranks > all_classes_up_to) return {1, 2, 8, 16, ranks - 1};
  std::vector<std::uint32_t> arities;
  for (std::uint32_t arity = 1; arity <= std::max(ranks, 2u); ++arity)
    if (arity <= 8 || arity == 16 || arity + 1 >= ranks) arities.push_back(arity);
  return arities;
}

}  // namespace

std::vector<plan::Spec> representative_specs(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  std::vector<plan::Shape> shapes{{}};
  if (algorithm.shapes != nullptr)
    for (auto& shape : algorithm.shapes(ranks)) shapes.push_back(std::move(shape));
  std::vector<plan::Spec> specs;
  for (auto const root : roots_of(algorithm, op, ranks))
    for (auto const& shape : shapes)
      for (auto const arity : arities_of(algorithm, ranks))
        for (bool const in_place : {false, true}) {
          plan::Spec spec{op, std::string(algorithm.name), ranks, root, arity, in_place, shape};
          if (algorithm.check(spec).has_value()) specs.push_back(std::move(spec));
        }
  return specs;
}

}  // namespace chorus::algorithms
