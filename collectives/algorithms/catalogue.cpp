#include "collectives/algorithms/catalogue.hpp"

#include <array>
#include <string>

#include "collectives/core/errc.hpp"

namespace chorus::algorithms {
namespace {

constexpr std::array<plan::Algorithm const*, 12> catalogue{
    &centralized,       &tree,  &ring,          &binomial, &chain, &scatter_allgather, &recursive_doubling,
    &recursive_halving, &bruck, &dissemination, &pairwise, &direct};

}  // namespace

std::span<plan::Algorithm const* const> all() { return catalogue; }

Result<plan::Algorithm const*> find(std::string_view name) {
  std::string known;
  for (auto const* algorithm : catalogue) {
    if (algorithm->name == name) return algorithm;
    known += (known.empty() ? "" : ", ") + std::string(algorithm->name);
  }
  return Error(PlanErrc::unknown_algorithm, "there is no algorithm '" + std::string(name) + "'; there are " + known);
}

}  // namespace chorus::algorithms
