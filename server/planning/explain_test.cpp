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

TEST_CASE("rooted operations of listed ranks have rank 0 as their root, and the reason names ranks") {
  planning::Place place;
  place.constants = model::Constants::defaults();
  place.shape.localities.assign(4, {});
  place.by_position = {3, 2, 1, 0};
  for (auto const op : {Op::reduce, Op::broadcast, Op::gather, Op::scatter})
    for (auto const* const algorithm : {"auto", "centralized"}) {
      CAPTURE(name(op));
      auto const choice = planning::select_in(place, {.op = op, .algorithm = algorithm}, 1000, 4);
      REQUIRE(choice.has_value());
      CHECK(choice->spec.root == 0);
      CHECK(choice->reason.find("root 0") != std::string::npos);
      auto const named = planning::select_in(place, {.op = op, .algorithm = algorithm, .root = 2}, 1000, 4);
      REQUIRE(named.has_value());
      CHECK(named->spec.root == 2);
      CHECK(named->reason.find("root 2") != std::string::npos);
    }
}
