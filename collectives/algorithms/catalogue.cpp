#include "collectives/algorithms/catalogue.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "collectives/core/assert.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/core/nearest_name.hpp"

namespace chorus::algorithms {
namespace {

struct Entry {
  plan::Algorithm const* algorithm;
  std::string_view room;
};

constexpr std::array entries{
    Entry{&mesh, "direct"},
    Entry{&centralized, "direct"},
    Entry{&tree, "trees"},
    Entry{&double_tree, "trees"},
    Entry{&multi_tree, "trees"},
    Entry{&ring_naive, "ring"},
    Entry{&ring, "ring"},
    Entry{&halving_doubling, "doubling"},
    Entry{&swing, "doubling"},
    Entry{&recursive_doubling, "doubling"},
    Entry{&bcube, "grouped"},
    Entry{&allpairs, "direct"},
    Entry{&hierarchical, "grouped"},
    Entry{&torus_2d, "grouped"},
    Entry{&torus_3d, "grouped"},
    Entry{&mesh_2d, "grouped"},
    Entry{&binomial, "trees"},
    Entry{&chain, "trees"},
    Entry{&scatter_allgather, "trees"},
    Entry{&recursive_halving, "doubling"},
    Entry{&bruck, "doubling"},
    Entry{&dissemination, "doubling"},
    Entry{&pairwise, "direct"},
    Entry{&direct, "direct"},
    Entry{&grouped_allpairs, "grouped"},
};

constexpr auto catalogue = [] {
  std::array<plan::Algorithm const*, entries.size()> algorithms{};
  std::ranges::transform(entries, algorithms.begin(), &Entry::algorithm);
  return algorithms;
}();

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

std::string_view room_of(plan::Algorithm const& algorithm) {
  auto const found = std::ranges::find(entries, &algorithm, &Entry::algorithm);
  CHORUS_ASSERT(found != entries.end(), "an algorithm of the catalogue");
  return found->room;
}

}  // namespace chorus::algorithms
