// An algorithm declares that it rotates if and only if all ranks do the same: a simulation then examines one rank.
#include "collectives/plan/rotation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"

using namespace chorus;
using namespace chorus::algorithms;

namespace {

bool has_room_to_rotate(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  auto const chunks = algorithm.chunks(spec);
  return (chunks == 1 || chunks % spec.ranks == 0) && algorithm.scratch_chunks(spec, 0) <= chunks;
}

std::vector<plan::Instruction> round_of(plan::Algorithm const& algorithm, plan::Spec const& spec, plan::Rank rank,
                                        std::uint32_t round) {
  plan::Sink sink;
  if (round < algorithm.rounds(spec, rank)) algorithm.emit(spec, rank, round, sink);
  return std::move(sink).instructions();
}

bool all_do_the_same(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  if (!has_room_to_rotate(algorithm, spec)) return false;
  plan::Rotation const rotate(spec.ranks, algorithm.chunks(spec));
  for (std::uint32_t round = 0; round < algorithm.rounds(spec, 0); ++round) {
    auto expected = round_of(algorithm, spec, 0, round);
    for (plan::Rank rank = 1; rank < spec.ranks; ++rank) {
      std::for_each(expected.begin(), expected.end(), rotate);
      if (algorithm.rounds(spec, rank) != algorithm.rounds(spec, 0)) return false;
      if (round_of(algorithm, spec, rank, round) != expected) return false;
    }
  }
  return true;
}

bool says_so(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  return algorithm.rotates != nullptr && algorithm.rotates(spec);
}

}  // namespace

TEST_CASE("an algorithm declares that it rotates if and only if all ranks do the same") {
  for (auto const op : all_ops)
    for (auto const* algorithm : all_for(op))
      for (bool const in_place : {false, true})
        for (std::uint32_t const ranks : {6, 8, 9, 10, 16}) {  // some algorithms are rings if p is prime
          plan::Spec const spec{
              .op = op, .algorithm = std::string(algorithm->name), .ranks = ranks, .in_place = in_place};
          if (algorithm->check(spec).has_error()) continue;
          CAPTURE(algorithm->name);
          CAPTURE(name(op));
          CAPTURE(ranks);
          CAPTURE(in_place);
          CHECK(says_so(*algorithm, spec) == all_do_the_same(*algorithm, spec));
        }
}
