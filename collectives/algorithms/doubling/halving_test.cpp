// halving_doubling and swing: steps, bytes and partners, in blocks of powers of two.
#include <doctest/doctest.h>

#include <array>
#include <bit>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"

using namespace chorus;
using algorithms::built, algorithms::steps, algorithms::traffic;
using plan::Rank, plan::Spec;

namespace {

constexpr std::array both{&algorithms::halving_doubling, &algorithms::swing};

// Returns the powers of two that sum to p, largest first.
std::vector<std::uint32_t> blocks_of(std::uint32_t p) {
  std::vector<std::uint32_t> blocks;
  for (; p > 0; p -= blocks.back()) blocks.push_back(std::bit_floor(p));
  return blocks;
}

std::uint32_t log2(std::uint32_t power) { return static_cast<std::uint32_t>(std::countr_zero(power)); }

}  // namespace

TEST_CASE("a power of two of ranks takes 2 log2 p steps of one message, and sends 2(p-1)/p of the vector") {
  for (auto const* algorithm : both)
    for (std::uint32_t p = 2; p <= 64; p *= 2) {
      REQUIRE(steps(*algorithm, {.ranks = p}) == 2 * log2(p));
      for (Rank rank = 0; rank < p; ++rank) {
        auto const program = built(*algorithm, {.ranks = p}, rank);
        auto const moved = traffic(program);
        REQUIRE(program.chunks == p);
        REQUIRE(moved.chunks_sent == 2 * (p - 1));
        REQUIRE(moved.chunks_received == 2 * (p - 1));
        REQUIRE(moved.messages_sent == 2 * log2(p));
        REQUIRE(moved.busiest_round == 1);
      }
    }
}

TEST_CASE("other groups take 2 log2 b1 + 2 sum b_i / b_(i+1) steps, and ranks send what their block's formula says") {
  for (auto const* algorithm : both)
    for (std::uint32_t p = 2; p <= 64; ++p) {
      auto const blocks = blocks_of(p);
      auto expected = 2 * log2(blocks[0]);
      for (std::size_t i = 1; i < blocks.size(); ++i) expected += 2 * (blocks[i - 1] / blocks[i]);
      REQUIRE(steps(*algorithm, {.ranks = p}) == expected);

      Rank rank = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i)
        for (std::uint32_t member = 0; member < blocks[i]; ++member, ++rank) {
          auto const vector = blocks[0], own = vector / blocks[i];
          auto const up = i > 0 ? own : 0, down = i + 1 < blocks.size() ? own : 0;
          auto const moved = traffic(built(*algorithm, {.ranks = p}, rank));
          REQUIRE(moved.chunks_sent == 2 * (vector - own) + up + down);
          REQUIRE(moved.chunks_received == 2 * (vector - own) + up + down);
          REQUIRE(moved.busiest_round == 1);
        }
    }
}

TEST_CASE("thirteen ranks are blocks of 8, 4 and 1") {
  CHECK(traffic(built(algorithms::halving_doubling, {.ranks = 13}, 12)).sent_to == std::vector<Rank>{11, 9, 10, 8});
  CHECK(traffic(built(algorithms::halving_doubling, {.ranks = 13}, 8)).sent_to ==
        std::vector<Rank>{9, 10, 4, 0, 12, 10, 9});
}

TEST_CASE("halving_doubling exchanges the most with the nearest rank") {
  CHECK(traffic(built(algorithms::halving_doubling, {.ranks = 16}, 5)).sent_to ==
        std::vector<Rank>{4, 7, 1, 13, 13, 1, 7, 4});
  auto const program = built(algorithms::halving_doubling, {.ranks = 16}, 5);
  CHECK(program.instructions[0].chunks == 8);
  CHECK(program.instructions[2].chunks == 4);
}

TEST_CASE("swing: even ranks meet the ranks 1, -1, 3, -5, 11, -21 further on, odd ranks those as far back") {
  CHECK(traffic(built(algorithms::swing, {.ranks = 64}, 0)).sent_to ==
        std::vector<Rank>{1, 63, 3, 59, 11, 43, 43, 11, 59, 3, 63, 1});
  CHECK(traffic(built(algorithms::swing, {.ranks = 64}, 7)).sent_to ==
        std::vector<Rank>{6, 8, 4, 12, 60, 28, 28, 60, 12, 4, 8, 6});
}

TEST_CASE("the program of one rank of 65536 halves in 16 steps") {
  for (auto const* algorithm : both)
    CHECK(traffic(built(*algorithm, {.ranks = plan::max_ranks}, 40'001)).messages_sent == 32);
}
