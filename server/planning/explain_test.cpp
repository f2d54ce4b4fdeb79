// How the model's choice is shown.
#include "server/planning/explain.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace chorus;

namespace {

model::Choice choice_of(std::vector<std::pair<std::string, std::uint32_t>> const& cheapest_first, std::size_t chosen) {
  model::Choice choice;
  for (auto const& [algorithm, arity] : cheapest_first) {
    model::Candidate candidate;
    candidate.spec.algorithm = algorithm;
    candidate.spec.arity = arity;
    choice.considered.push_back(candidate);
  }
  choice.spec = choice.considered.at(chosen).spec;
  return choice;
}

std::vector<std::string> names(std::vector<api::Considered> const& shown) {
  std::vector<std::string> result;
  for (auto const& one : shown) result.push_back(one.algorithm + "/" + std::to_string(one.arity));
  return result;
}

}  // namespace

TEST_CASE("the cheapest variant of each algorithm is shown, up to a limit, and the chosen one") {
  std::vector<std::pair<std::string, std::uint32_t>> const all{{"tree", 4},  {"ring", 2}, {"tree", 2},
                                                               {"bcube", 2}, {"mesh", 2}, {"bcube", 3}};
  using Names = std::vector<std::string>;
  CHECK(names(planning::show_cheapest(choice_of(all, 0), 10)) == Names{"tree/4", "ring/2", "bcube/2", "mesh/2"});
  CHECK(names(planning::show_cheapest(choice_of(all, 0), 2)) == Names{"tree/4", "ring/2"});
  CHECK(names(planning::show_cheapest(choice_of(all, 5), 2)) == Names{"tree/4", "ring/2", "bcube/3"});
  CHECK(names(planning::show_cheapest(choice_of(all, 2), 2)) == Names{"tree/4", "ring/2", "tree/2"});
}
