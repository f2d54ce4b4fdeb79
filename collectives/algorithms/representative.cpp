#include "collectives/algorithms/representative.hpp"

#include <algorithm>
#include <numeric>

namespace chorus::algorithms {
namespace {

constexpr std::uint32_t all_roots_up_to = 8;

std::vector<plan::Rank> roots_of(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  if (!algorithm.rooted && !is_rooted(op)) return {0};
  std::vector<plan::Rank> roots(ranks);
  std::iota(roots.begin(), roots.end(), 0);
  if (ranks > all_roots_up_to) roots = {0, 1, ranks / 2, ranks - 1};
  return roots;
}

std::uint32_t last_arity(plan::Algorithm const& algorithm, std::uint32_t ranks) {
  return algorithm.uses_arity ? std::clamp(ranks - 1, 2u, 8u) : 2;
}

}  // namespace

std::vector<plan::Spec> representative_specs(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  std::vector<plan::Shape> shapes{{}};
  if (algorithm.shapes != nullptr)
    for (auto& shape : algorithm.shapes(ranks)) shapes.push_back(std::move(shape));
  std::vector<plan::Spec> specs;
  for (auto const root : roots_of(algorithm, op, ranks))
    for (auto const& shape : shapes)
      for (std::uint32_t arity = 2; arity <= last_arity(algorithm, ranks); ++arity)
        for (bool const in_place : {false, true}) {
          plan::Spec spec{op, std::string(algorithm.name), ranks, root, arity, in_place, shape};
          if (algorithm.check(spec).has_value()) specs.push_back(std::move(spec));
        }
  return specs;
}

}  // namespace chorus::algorithms
