// mesh, allpairs, ring_naive: partners of every round, and the order of contributions.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"

using namespace chorus;
using algorithms::built, algorithms::steps, algorithms::traffic;
using plan::Buffer, plan::Opcode, plan::Rank, plan::Spec;

namespace {

// Returns the ranks whose contributions `rank` adds, in order, if it reduces.
std::vector<Rank> order_of_contributions(plan::Algorithm const& algorithm, Spec const& spec, Rank rank) {
  std::vector<Rank> order;
  if (rank == 0) order.push_back(0);  // the operand of the first reduction
  for (auto const& instruction : built(algorithm, spec, rank).instructions) {
    bool const begins = instruction.op == Opcode::recv && order.empty();
    if (begins || instruction.op == Opcode::recv_reduce) order.push_back(instruction.peer);
    if (instruction.op == Opcode::reduce) order.push_back(rank);
  }
  return order;
}

std::vector<Rank> worker_order(std::uint32_t ranks) {
  std::vector<Rank> order;
  for (Rank rank = 0; rank < ranks; ++rank) order.push_back(rank);
  return order;
}

}  // namespace

TEST_CASE("mesh and allpairs: every rank adds contributions in worker order, also in place") {
  for (auto const* algorithm : {&algorithms::mesh, &algorithms::allpairs})
    for (std::uint32_t p = 2; p <= 64; ++p)
      for (bool const in_place : {false, true})
        for (Rank rank = 0; rank < p; ++rank) {
          Spec const spec{.ranks = p, .in_place = in_place};
          REQUIRE(order_of_contributions(*algorithm, spec, rank) == worker_order(p));
          REQUIRE(algorithm->in_worker_order(spec));
        }
}

TEST_CASE("mesh: every rank sends its vector to every other, one in a round, in 2p - 3 steps") {
  for (std::uint32_t p = 2; p <= 64; ++p) {
    REQUIRE(steps(algorithms::mesh, {.ranks = p}) == 2 * p - 3);
    for (Rank rank = 0; rank < p; ++rank) {
      auto const moved = traffic(built(algorithms::mesh, {.ranks = p}, rank));
      REQUIRE(moved.chunks_sent == p - 1);
      REQUIRE(moved.chunks_received == p - 1);
      REQUIRE(moved.busiest_round == 1);
    }
  }
}

TEST_CASE("allpairs: every rank sends 2(p-1) chunks of p, one in a round, in 3p - 3 steps") {
  for (std::uint32_t p = 2; p <= 64; ++p) {
    REQUIRE(steps(algorithms::allpairs, {.ranks = p}) == 3 * p - 3 - (p == 2 ? 1 : 0));
    for (Rank rank = 0; rank < p; ++rank) {
      auto const program = built(algorithms::allpairs, {.ranks = p}, rank);
      auto const moved = traffic(program);
      REQUIRE(program.chunks == p);
      REQUIRE(moved.chunks_sent == 2 * (p - 1));
      REQUIRE(moved.chunks_received == 2 * (p - 1));
      REQUIRE(moved.busiest_round == 1);
      for (auto const& channel : program.channels) REQUIRE(channel.sends == 2);
    }
  }
}

TEST_CASE("plans have copies in place only: in mesh every rank has one, in allpairs only the last rank") {
  for (auto const* algorithm : {&algorithms::mesh, &algorithms::allpairs})
    for (bool const in_place : {false, true})
      for (Rank rank = 0; rank < 7; ++rank) {
        auto copies = 0;
        for (auto const& instruction : built(*algorithm, {.ranks = 7, .in_place = in_place}, rank).instructions)
          copies += instruction.op == Opcode::copy;
        CHECK(copies == (in_place && (algorithm == &algorithms::mesh || rank == 6) ? 1 : 0));
      }
}

TEST_CASE("mesh: receives in place do not wait for sends") {
  for (std::uint32_t const p : {2u, 3u, 8u})
    for (Rank rank = 0; rank < p; ++rank)
      for (auto const& instruction : built(algorithms::mesh, {.ranks = p, .in_place = true}, rank).instructions)
        if (instruction.receives()) CHECK(instruction.dst == Buffer::scratch);
}

TEST_CASE("ring_naive: the whole vector goes around the ring twice, one rank at a time") {
  for (std::uint32_t p = 2; p <= 64; ++p) {
    REQUIRE(steps(algorithms::ring_naive, {.ranks = p}) == 2 * (p - 1));
    auto sent = std::uint64_t{0};
    for (Rank rank = 0; rank < p; ++rank) {
      auto const program = built(algorithms::ring_naive, {.ranks = p}, rank);
      sent += traffic(program).chunks_sent;
      for (auto const to : traffic(program).sent_to) REQUIRE(to == (rank + 1) % p);
    }
    REQUIRE(sent == 2 * (p - 1));
  }
}
