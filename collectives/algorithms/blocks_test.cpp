// Operations without a root in which every rank has a block: compares steps, messages and chunks with the formulas in
// the algorithms' comments, for every p to 64.
#include <doctest/doctest.h>

#include <bit>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/measured_for_tests.hpp"

using namespace chorus;
using algorithms::Measured;
using plan::Opcode, plan::Rank, plan::Spec;

namespace {

constexpr std::uint32_t max_ranks = 64;

std::uint32_t log_up(std::uint32_t p) { return static_cast<std::uint32_t>(std::bit_width(p - 1)); }

template <class Test>
void for_each_group(std::initializer_list<Op> ops, Test test) {
  for (std::uint32_t p = 2; p <= max_ranks; ++p)
    for (auto const op : ops) test(Spec{.op = op, .ranks = p});
}

// Requires the minimum: every block is sent once to every rank that needs it.
void sends_every_block_once(Measured const& measured, Spec const& spec) {
  REQUIRE(measured.chunks() == spec.ranks);
  REQUIRE(measured.all_send(spec.ranks - 1));
}

}  // namespace

TEST_CASE("ring: every rank sends one block to the next rank in each of p-1 steps") {
  for_each_group({Op::all_gather, Op::reduce_scatter}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::ring, spec);
    sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == spec.ranks - 1);
    for (auto const& program : measured.programs)
      REQUIRE(program.channel((program.rank + 1) % spec.ranks)->sends == spec.ranks - 1);
  });
}

TEST_CASE("direct: every rank sends one message to every other rank") {
  for_each_group({Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::barrier}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::direct, spec);
    sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == (spec.op == Op::reduce_scatter ? 2 * spec.ranks - 3 : spec.ranks - 1));
    REQUIRE(measured.messages == spec.ranks * (spec.ranks - 1));
    REQUIRE(measured.one_partner_at_a_time);
    for (auto const& program : measured.programs) REQUIRE(program.channels.size() == spec.ranks - 1);
  });
}

TEST_CASE("pairwise: every rank meets every other once, and for powers of two exchanges with one rank in a round") {
  for_each_group({Op::reduce_scatter, Op::all_to_all}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::pairwise, spec);
    sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == spec.ranks - 1);
    REQUIRE(measured.messages == spec.ranks * (spec.ranks - 1));
    REQUIRE(measured.one_partner_at_a_time);
    for (auto const& program : measured.programs)
      for (std::size_t round = 0; round < spec.ranks - 1; ++round) {
        auto const* both = &program.instructions[program.round_begin[round]];
        REQUIRE(both[0].op == Opcode::send);
        REQUIRE(both[1].receives());
        if (std::has_single_bit(spec.ranks)) REQUIRE(both[0].peer == both[1].peer);
      }
  });
}

TEST_CASE("an all_to_all in place sends from scratch and has no additional step") {
  for (std::uint32_t p = 2; p <= max_ranks; ++p)
    for (auto const* algorithm : {&algorithms::direct, &algorithms::pairwise}) {
      auto const measured = Measured(*algorithm, {.op = Op::all_to_all, .ranks = p, .in_place = true});
      REQUIRE(measured.steps == p - 1);
      REQUIRE(measured.all_send(p - 1));
      for (auto const& program : measured.programs)
        for (auto const& instruction : program.instructions)
          if (instruction.op == Opcode::send) REQUIRE(instruction.src == plan::Buffer::scratch);
    }
}

TEST_CASE("recursive_doubling: an all_gather doubles, and folds the ranks beyond a power of two") {
  for_each_group({Op::all_gather, Op::barrier}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::recursive_doubling, spec);
    auto const power = std::bit_floor(spec.ranks);
    if (power == spec.ranks) sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == log_up(power) + (power == spec.ranks ? 0 : 2));
    // Rank 1 stands for two, and sends all blocks to its partner at the end.
    auto busiest = power == spec.ranks ? 0 : spec.ranks;
    for (auto places = 1u; places < power; places *= 2) busiest += places + std::min(places, spec.ranks - power);
    REQUIRE(measured.sent[power == spec.ranks ? 0 : 1] == busiest);
    REQUIRE(measured.most() == busiest);
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("recursive_doubling: an all_reduce sends a vector per step") {
  for (std::uint32_t p = 2; p <= max_ranks; ++p)
    for (bool const in_place : {false, true}) {
      auto const measured = Measured(algorithms::recursive_doubling, {.ranks = p, .in_place = in_place});
      auto const power = std::bit_floor(p);
      REQUIRE(measured.chunks() == 1);
      REQUIRE(measured.steps == log_up(power) + (power == p ? 0 : 2));
      REQUIRE(measured.most() == log_up(power) + (power == p ? 0 : 1));
      REQUIRE(measured.messages == power * log_up(power) + 2 * (p - power));
      REQUIRE(measured.one_partner_at_a_time);
    }
}

TEST_CASE("recursive_halving: a reduce_scatter halves, and folds the ranks beyond a power of two") {
  for_each_group({Op::reduce_scatter}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::recursive_halving, spec);
    auto const power = std::bit_floor(spec.ranks);
    if (power == spec.ranks) sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == log_up(power) + (power == spec.ranks ? 0 : 2));
    REQUIRE(measured.most() <= spec.ranks);
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("bruck: an all_gather doubles for every p") {
  for_each_group({Op::all_gather}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::bruck, spec);
    sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == log_up(spec.ranks));
    REQUIRE(measured.one_partner_at_a_time);
  });
}

TEST_CASE("bruck: an all_to_all sends one message per step, and a block as often as its distance has bits") {
  for_each_group({Op::all_to_all}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::bruck, spec);
    auto hops = std::uint64_t{0};
    for (std::uint32_t distance = 1; distance < spec.ranks; ++distance)
      hops += static_cast<unsigned>(std::popcount(distance));
    REQUIRE(measured.steps == log_up(spec.ranks));
    REQUIRE(measured.messages == spec.ranks * log_up(spec.ranks));
    REQUIRE(measured.all_send(hops));
    REQUIRE(measured.programs.front().equal_chunks);
  });
}

TEST_CASE("dissemination: a barrier has the fewest possible steps for every p") {
  for_each_group({Op::barrier}, [](Spec const& spec) {
    auto const measured = Measured(algorithms::dissemination, spec);
    sends_every_block_once(measured, spec);
    REQUIRE(measured.steps == log_up(spec.ranks));
    REQUIRE(measured.one_partner_at_a_time);
  });
}
