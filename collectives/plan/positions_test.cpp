#include "collectives/plan/positions.hpp"

#include <doctest/doctest.h>

#include "collectives/core/errc.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/plan/toy_for_tests.hpp"

using namespace chorus;
using namespace chorus::plan;

namespace {

Spec listed(Spec spec, std::vector<Rank> by_position) {
  spec.by_position = std::move(by_position);
  return spec;
}

}  // namespace

TEST_CASE("the program of a rank is that of its position, with ranks in place of positions") {
  std::vector<Rank> const by_position{2, 0, 3, 1};
  auto const spec = listed(toy_spec(4), by_position);
  for (std::uint32_t position = 0; position < 4; ++position) {
    auto const program = build(toy, spec, by_position[position]).value();
    auto seen = build(toy, toy_spec(4), position).value();
    CHECK(program.rank == by_position[position]);
    CHECK(program.spec == spec);
    REQUIRE(program.instructions.size() == seen.instructions.size());
    for (std::size_t i = 0; i < seen.instructions.size(); ++i) {
      auto& each = seen.instructions[i];
      if (each.op == Opcode::send || each.receives()) each.peer = by_position[each.peer];
      CHECK(program.instructions[i] == each);
    }
    for (auto const& channel : seen.channels) {
      auto const* named = program.channel(by_position[channel.peer]);
      REQUIRE(named != nullptr);
      CHECK(named->sends == channel.sends);
      CHECK(named->send_digest == channel.send_digest);
      CHECK(named->receive_digest == channel.receive_digest);
    }
  }
}

TEST_CASE("positions convert to ranks and back, and the root converts to its position") {
  Spec const spec{.op = Op::gather, .algorithm = "tree", .ranks = 3, .root = 1, .by_position = {1, 2, 0}};
  CHECK(rank_at_position(spec, 0) == 1);
  CHECK(position_of(spec, 0) == 2);
  CHECK(by_positions(spec) == Spec{.op = Op::gather, .algorithm = "tree", .ranks = 3, .root = 0});
  CHECK(holding(spec, 1, 6).input == ChunkRange{0, 2});
  CHECK(holding(spec, 0, 6).input == ChunkRange{4, 2});
  CHECK(holding(spec, 1, 6).output == ChunkRange{0, 6});
  CHECK(holding(spec, 0, 6).output.empty());
}

TEST_CASE("by_position is empty for the order of the ranks, and for algorithms that reduce in rank order") {
  Spec const spec{.algorithm = "toy", .ranks = 3};
  CHECK(with_positions(toy, spec, {0, 1, 2}) == spec);
  CHECK(with_positions(toy, spec, {}) == spec);
  CHECK(with_positions(toy, spec, {1, 0, 2}) == listed(spec, {1, 0, 2}));
  auto in_turn = toy;
  in_turn.in_worker_order = [](Spec const&) { return true; };
  CHECK(with_positions(in_turn, spec, {1, 0, 2}) == spec);
}

TEST_CASE("a by_position that is not a permutation of the ranks is refused") {
  auto const why = [](std::vector<Rank> by_position) {
    return check(listed({.algorithm = "ring", .ranks = 3}, std::move(by_position))).error().detail;
  };
  CHECK(check(listed({.algorithm = "ring", .ranks = 3}, {1, 2, 0})).has_value());
  CHECK(why({1, 0}) == "by_position has 2 numbers; expected one for each of 3 ranks");
  CHECK(why({1, 0, 3}) == "by_position names rank 3; expected 0..2");
  CHECK(why({1, 0, 1}) == "by_position names rank 1 twice; expected every rank once");
  CHECK(why({0, 1, 2}) == "by_position is the order of the ranks; expected an empty list for it");
  auto in_turn = toy;
  in_turn.in_worker_order = [](Spec const&) { return true; };
  auto const refused = build(in_turn, listed(toy_spec(3), {1, 0, 2, 3}), 0);
  CHECK(refused.error().detail == "toy takes contributions in the order of ranks; expected an empty by_position");
}
