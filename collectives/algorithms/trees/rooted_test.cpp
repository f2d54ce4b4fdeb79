// Operations with a root, and those that go to the root and back: compares steps, messages and chunks with the formulas
// in the algorithms' comments, for every p to 64.
#include <doctest/doctest.h>

#include <bit>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/measured_for_tests.hpp"

using namespace chorus;
using algorithms::Measured;
using plan::Opcode, plan::Program, plan::Rank, plan::Spec;

namespace {

constexpr std::uint32_t max_ranks = 64;

std::uint32_t log_up(std::uint32_t p) { return static_cast<std::uint32_t>(std::bit_width(p - 1)); }

// Calls test() for every p from 2, every operation and several roots.
template <class Test>
void for_each_root(std::initializer_list<Op> ops, Test test) {
  for (std::uint32_t p = 2; p <= max_ranks; ++p)
    for (Rank root : {Rank{0}, p / 2, p - 1})
      for (auto const op : ops) test(Spec{.op = op, .ranks = p, .root = root});
}

std::uint64_t sent_by_others(Measured const& measured, Rank root) { return measured.total() - measured.sent[root]; }

// Returns, by rank, the rank from which the vector comes in a broadcast; for the root itself.
std::vector<Rank> parents(std::vector<Program> const& programs) {
  std::vector<Rank> list;
  for (auto const& program : programs) {
    list.push_back(program.rank);
    for (auto const& instruction : program.instructions)
      if (instruction.receives()) list.back() = instruction.peer;
  }
  return list;
}

std::uint32_t depth(std::vector<Rank> const& parents, Rank rank) {
  return parents[rank] == rank ? 0 : 1 + depth(parents, parents[rank]);
}

}  // namespace

TEST_CASE("centralized: the root sends or receives all messages, one rank after the other") {
  for_each_root({Op::reduce, Op::broadcast, Op::gather, Op::scatter}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::centralized, spec);
    auto const p = spec.ranks;
    bool const up = spec.op == Op::reduce || spec.op == Op::gather;
    REQUIRE(measured.steps == p - 1);
    REQUIRE(measured.messages == p - 1);
    REQUIRE(measured.chunks() == (has_blocks(spec.op) ? p : 1));
    REQUIRE(measured.sent[spec.root] == (up ? 0 : p - 1));
    REQUIRE(sent_by_others(measured, spec.root) == (up ? p - 1 : 0));
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("centralized: operations without a root take the steps and bytes of both directions") {
  for_each_root({Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::barrier}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::centralized, spec);
    auto const p = spec.ranks;
    REQUIRE(measured.steps == 2 * (p - 1));
    REQUIRE(measured.messages == 2 * (p - 1));
    REQUIRE(sent_by_others(measured, spec.root) == (p - 1) * (spec.op == Op::reduce_scatter ? p : 1));
    bool const whole = spec.op == Op::all_gather || spec.op == Op::barrier;
    REQUIRE(measured.sent[spec.root] == (p - 1) * (whole ? p : 1));
  });
}

TEST_CASE("binomial: the fewest possible steps, and one message per edge and direction") {
  for_each_root({Op::all_reduce, Op::reduce, Op::broadcast}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::binomial, spec);
    auto const ways = spec.op == Op::all_reduce ? 2 : 1;
    REQUIRE(measured.steps == ways * log_up(spec.ranks));
    REQUIRE(measured.messages == ways * (spec.ranks - 1));
    REQUIRE(measured.sent[spec.root] == (spec.op == Op::reduce ? 0 : log_up(spec.ranks)));
    REQUIRE(measured.most() <= log_up(spec.ranks));
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("binomial: blocks are sent as often as their place has bits, in at most two messages per edge") {
  for_each_root({Op::gather, Op::scatter}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::binomial, spec);
    auto hops = std::uint64_t{0};
    for (std::uint32_t place = 1; place < spec.ranks; ++place) hops += static_cast<unsigned>(std::popcount(place));
    REQUIRE(measured.steps == log_up(spec.ranks));
    REQUIRE(measured.total() == hops);
    REQUIRE(measured.messages < spec.ranks + (spec.root == 0 ? 0 : log_up(spec.ranks)));
    REQUIRE(measured.sent[spec.root] == (spec.op == Op::gather ? 0 : spec.ranks - 1));
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("binomial: a barrier gathers and broadcasts") {
  for_each_root({Op::barrier}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::binomial, spec);
    REQUIRE(measured.steps == 2 * log_up(spec.ranks));
    REQUIRE(measured.sent[spec.root] == log_up(spec.ranks) * spec.ranks);
  });
}

TEST_CASE("tree: no rank has more children than the arity, and no tree of this arity is less deep") {
  for_each_root({Op::broadcast}, [](Spec spec) {
    for (spec.arity = 1; spec.arity <= 8; ++spec.arity) {
      auto const measured = Measured(algorithms::tree, spec);
      auto const list = parents(measured.programs);
      auto deepest = std::uint32_t{0};
      std::vector<std::uint32_t> children(spec.ranks);
      for (Rank rank = 0; rank < spec.ranks; ++rank) {
        deepest = std::max(deepest, depth(list, rank));
        if (rank != spec.root) ++children[list[rank]];
      }
      REQUIRE(*std::max_element(children.begin(), children.end()) <= spec.arity);
      auto less_deep = std::uint64_t{0}, level = std::uint64_t{1};  // nodes of a less deep tree, and of its next level
      for (std::uint32_t d = 0; d < deepest; ++d, level *= spec.arity) less_deep += level;
      REQUIRE(less_deep < spec.ranks);
      REQUIRE(measured.steps <= std::min(spec.arity, spec.ranks - 1) * deepest);
      REQUIRE(measured.messages == spec.ranks - 1);
      REQUIRE(measured.one_partner_at_a_time);
    }
  });
}

TEST_CASE("tree: the subtree of a rank has the ranks after it") {
  for (std::uint32_t p = 2; p <= max_ranks; ++p)
    for (std::uint32_t arity = 2; arity <= 8; ++arity) {
      auto const list =
          parents(algorithms::programs_of(algorithms::tree, {.op = Op::broadcast, .ranks = p, .arity = arity}));
      auto last = Rank{0};
      for (Rank rank = 1; rank < p; ++rank) {  // a rank's parent is the rank before it, or an ancestor of that rank
        while (last != list[rank]) {
          REQUIRE(last != 0);
          last = list[last];
        }
        last = rank;
      }
    }
}

TEST_CASE("tree: the blocks of a subtree travel together") {
  for_each_root({Op::gather, Op::scatter}, [](Spec spec) {
    for (spec.arity = 1; spec.arity <= 8; ++spec.arity) {
      auto const measured = Measured(algorithms::tree, spec);
      auto up_and_down = spec;
      up_and_down.op = Op::broadcast;
      auto const list = parents(algorithms::programs_of(algorithms::tree, up_and_down));
      auto hops = std::uint64_t{0};
      for (Rank rank = 0; rank < spec.ranks; ++rank) hops += depth(list, rank);
      REQUIRE(measured.total() == hops);
      REQUIRE(measured.sent[spec.root] == (spec.op == Op::gather ? 0 : spec.ranks - 1));
      REQUIRE(measured.messages <= 2 * (spec.ranks - 1));
    }
  });
}

TEST_CASE("chain: every link carries one vector") {
  for_each_root({Op::reduce, Op::broadcast}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::chain, spec);
    REQUIRE(measured.steps == spec.ranks - 1);
    REQUIRE(measured.messages == spec.ranks - 1);
    REQUIRE(measured.most() == 1);
    for (auto const& program : measured.programs)
      for (auto const& channel : program.channels)
        REQUIRE(((program.rank + 1) % spec.ranks == channel.peer || (channel.peer + 1) % spec.ranks == program.rank));
  });
}

TEST_CASE("chain: blocks pass all links between their owner and the root, one at a time") {
  for_each_root({Op::gather, Op::scatter}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::chain, spec);
    auto const p = std::uint64_t{spec.ranks};
    REQUIRE(measured.steps == p - 1);
    REQUIRE(measured.messages == p * (p - 1) / 2);
    REQUIRE(measured.total() == measured.messages);
    REQUIRE(measured.most() == p - 1);
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("scatter_allgather: no rank gets a part twice, and no rank sends more than two vectors") {
  for_each_root({Op::broadcast}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::scatter_allgather, spec);
    auto const p = std::uint64_t{spec.ranks};
    REQUIRE(measured.steps == log_up(spec.ranks) + p - 1);
    REQUIRE(measured.total() == p * (p - 1));
    REQUIRE(measured.most() == 2 * (p - 1));
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("recursive_halving: a reduce sends at most one and a half vectors, in twice as many steps as a tree") {
  for_each_root({Op::reduce}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::recursive_halving, spec);
    auto const power = std::bit_floor(spec.ranks);
    REQUIRE(measured.chunks() == power);
    REQUIRE(measured.steps == 2 * log_up(power) + (power == spec.ranks ? 0 : 1));
    REQUIRE(measured.most() <= power * 3 / 2 - 1 + (power == spec.ranks ? 0 : 1));
    REQUIRE(measured.sent[spec.root] == power - 1);
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("ring: a reduce sends a chunk of p at a time, and each finished chunk once more to the root") {
  for_each_root({Op::reduce}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::ring, spec);
    auto const p = std::uint64_t{spec.ranks};
    REQUIRE(measured.steps == 2 * (p - 1));
    REQUIRE(measured.sent[spec.root] == p - 1);
    REQUIRE(sent_by_others(measured, spec.root) == (p - 1) * p);
    REQUIRE(measured.one_partner_at_a_time);
  });
}
