#include "collectives/algorithms/catalogue.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/core/nearest_name.hpp"

namespace chorus::algorithms {
namespace {

constexpr std::array<plan::Algorithm const*, 25> catalogue{&mesh,
                                                           &centralized,
                                                           &tree,
                                                           &double_tree,
                                                           &multi_tree,
                                                           &ring_naive,
                                                           &ring,
                                                           &halving_doubling,
                                                           &swing,
                                                           &recursive_doubling,
                                                           &bcube,
                                                           &allpairs,
                                                           &hierarchical,
                                                           &torus_2d,
                                                           &torus_3d,
                                                           &mesh_2d,
                                                           &binomial,
                                                           &chain,
                                                           &scatter_allgather,
                                                           &recursive_halving,
                                                           &bruck,
                                                           &dissemination,
                                                           &pairwise,
                                                           &direct,
                                                           &grouped_allpairs};

}  // namespace

std::span<plan::Algorithm const* const> all() { return catalogue; }

std::vector<plan::Algorithm const*> all_for(Op op) {
  std::vector<plan::Algorithm const*> able;
  for (auto const* algorithm : catalogue)
    if (algorithm->check({.op = op, .algorithm = std::string(algorithm->name), .ranks = 2}).has_value())
      able.push_back(algorithm);
  return able;
}

Result<plan::Algorithm const*> find(std::string_view name) {
  auto const found = std::ranges::find(catalogue, name, &plan::Algorithm::name);
  if (found != catalogue.end()) return *found;
  std::vector<std::string_view> names;
  for (auto const* algorithm : catalogue) names.push_back(algorithm->name);
  return Error(PlanErrc::unknown_algorithm, unknown_name("algorithm", name, names));
}

}  // namespace chorus::algorithms
