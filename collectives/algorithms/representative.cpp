#include "collectives/algorithms/representative.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace chorus::algorithms {
namespace {

constexpr std::uint32_t all_roots_up_to = 8;
// The proof of larger plans takes long, so they have only the extremes of roots and arities.
constexpr std::uint32_t all_classes_up_to = 256;

std::vector<plan::Rank> roots_of(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  if (!algorithm.rooted && !is_rooted(op)) return {0};
  std::vector<plan::Rank> roots(ranks);
  std::iota(roots.begin(), roots.end(), 0);
  if (ranks > all_roots_up_to) roots = {0, 1, ranks / 2, ranks - 1};
  if (ranks > all_classes_up_to) roots = {0, ranks - 1};
  return roots;
}

// Returns the arities of a chain, of small and larger trees and of the star, and p. Arities above p give no other plan.
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

std::vector<std::vector<plan::Rank>> representative_orders(std::uint32_t ranks) {
  std::vector<plan::Rank> by_rank(ranks);
  std::iota(by_rank.begin(), by_rank.end(), 0);
  auto backwards = by_rank;
  std::reverse(backwards.begin(), backwards.end());
  std::vector<plan::Rank> by_rack;  // even ranks are in one rack, odd ranks in the other
  for (plan::Rank first : {0, 1})
    for (auto rank = first; rank < ranks; rank += 2) by_rack.push_back(rank);
  std::vector<std::vector<plan::Rank>> orders;
  auto const add = [&](std::vector<plan::Rank> order) {
    if (order != by_rank && std::find(orders.begin(), orders.end(), order) == orders.end())
      orders.push_back(std::move(order));
  };
  add(std::move(backwards));
  add(std::move(by_rack));
  std::minstd_rand random;
  for (int i = 0; i < 2; ++i) {
    auto order = by_rank;
    for (auto left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random() % left]);
    add(std::move(order));
  }
  return orders;
}

}  // namespace chorus::algorithms
