#include "server/coordinator/diagnosis/stall.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::coordinator;
using Kind = RankLook::Kind;
using Ranks = std::vector<std::uint32_t>;

namespace {

RankLook look(std::uint32_t rank, Kind kind) { return {rank, "w" + std::to_string(rank), kind, {}}; }

// A running rank that waits for another rank of the run; workers are listed in reverse order.
RankLook waiting(std::uint32_t rank, std::uint32_t for_rank, std::string suspicion = "slow", double still_s = 3) {
  auto one = look(rank, Kind::running);
  one.progress.still_seconds = still_s;
  one.progress.steps = 12;
  one.progress.waiting_for.push_back({9 - for_rank, "w" + std::to_string(for_rank), "", std::move(suspicion), 3});
  one.progress.instructions.push_back({6, "recv", 9 - for_rank, 1, 0, 4096});
  return one;
}

}  // namespace

TEST_CASE("a rank that is silent or has not begun is waited for, whatever the others report") {
  CHECK(waited_for({waiting(0, 1), waiting(1, 2), look(2, Kind::silent), waiting(3, 0)}) == Ranks{2});
  CHECK(waited_for({waiting(0, 1), look(1, Kind::not_begun), look(2, Kind::silent)}) == Ranks{1, 2});
}

TEST_CASE("then a busy rank, then a suspected one, then one that waits for no rank") {
  CHECK(waited_for({waiting(0, 1), look(1, Kind::busy), waiting(2, 0)}) == Ranks{1});
  CHECK(waited_for({waiting(0, 1), waiting(1, 2, "silent"), waiting(2, 0)}) == Ranks{2});
  CHECK(waited_for({waiting(0, 1), waiting(1, 2), look(2, Kind::running)}) == Ranks{2});
  CHECK(waited_for({waiting(0, 1), waiting(1, 0), look(2, Kind::ended)}) == Ranks{0, 1});
}

TEST_CASE("nothing moves since the last rank moved") {
  CHECK(still_seconds({waiting(0, 1, "slow", 3), waiting(1, 0, "slow", 2)}, 9) == 2);
  CHECK(still_seconds({look(0, Kind::silent)}, 9) == 9);
  CHECK(still_seconds({waiting(0, 1, "slow", 30)}, 9) == 9);
}

TEST_CASE("every rank is shown with its instruction, and its peer by the rank in the group") {
  auto const stall = to_stall({waiting(0, 1), look(1, Kind::silent)}, 3);
  CHECK(stall.waiting_for == Ranks{1});
  CHECK(stall.text == "nothing has moved for 3.0 s: waiting for rank 1 ('w1'), which does not answer");
  REQUIRE(stall.ranks.size() == 2);
  CHECK(stall.ranks[0].state == "running");
  CHECK(stall.ranks[0].peer == 1u);
  CHECK(stall.ranks[0].instruction == "recv from rank 1, message 2 (step 7 of 12), 0 of 4096 bytes");
  CHECK(stall.ranks[1].state == "silent");
  CHECK(stall.ranks[1].instruction.empty());
}
