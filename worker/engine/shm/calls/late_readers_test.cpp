// Members that are behind when another one leaves: what they read is right, or their call fails.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "tests/support/mentions.hpp"
#include "worker/engine/testing/shared_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

constexpr std::size_t elements = 25000;

// A vector of the root that is not in its arena is read in the slots of its board.
RunResult broadcast(SharedMembers& members, plan::Rank rank, std::span<float> x, plan::Algorithm const& algorithm,
                    std::chrono::milliseconds timeout = 20s) {
  plan::Spec const spec{.op = Op::broadcast,
                        .algorithm = std::string(algorithm.name),
                        .ranks = static_cast<std::uint32_t>(members.groups.size()),
                        .in_place = true};
  auto program = std::make_shared<plan::Program const>(plan::build(algorithm, spec, rank).value());
  auto const call =
      SharedCall::make(program, {x.size(), {}, {}}, Dtype::f32, ReduceOp::sum, x.size(), *members.arenas[rank]).value();
  auto const bytes = std::as_writable_bytes(x);
  auto const input = program->input.empty() ? std::span<std::byte>() : bytes;
  return members.groups[rank]->run(*call, 1, "a broadcast", input, bytes, timeout);
}

RunResult sum(SharedMembers& members, plan::Rank rank, std::chrono::milliseconds timeout) {
  return members.all_reduce(rank, members.vector(rank, 100, 1), members.vector(rank, 100, 0), algorithms::mesh,
                            timeout);
}

// The root ends its part of the broadcast long before the others begin theirs, and leaves.
void broadcast_and_leave(SharedMembers& members, bool fails_then) {
  std::vector<float> x(elements, 7);
  REQUIRE(broadcast(members, 0, x, algorithms::centralized).status.has_value());
  if (fails_then) REQUIRE(sum(members, 0, 1ms).status.has_error());
  members.groups[0].reset();
}

}  // namespace

TEST_CASE("a root that leaves after its broadcast, well or after a failure, has left its vector for a late member") {
  for (bool const fails_then : {false, true}) {
    CAPTURE(fails_then);
    SharedMembers members(2);
    broadcast_and_leave(members, fails_then);
    std::vector<float> y(elements, -1);
    auto const result = broadcast(members, 1, y, algorithms::centralized);
    CHECK(result.status.has_value());
    CHECK(y == std::vector<float>(elements, 7));
  }
}

TEST_CASE("a member that comes after the root's board was given back fails, and takes no zeros for the vector") {
  for (bool const fails_then : {false, true}) {
    CAPTURE(fails_then);
    SharedMembers members(2);
    broadcast_and_leave(members, fails_then);
    members.arenas[0]->retire_left(std::chrono::steady_clock::now());
    std::vector<float> y(elements, -1);
    auto const result = broadcast(members, 1, y, algorithms::centralized);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::peer_lost);
    CHECK(mentions(result.status.error().detail, "lost rank 0 (w0) while reading its memory: it has left the group"));
    CHECK(result.culprits == std::vector<plan::Rank>{0});
  }
}

TEST_CASE("zeros of a board that was given back are no success for a member to which another one passes them on") {
  SharedMembers members(3);
  std::vector<float> x(elements, 7);
  REQUIRE(broadcast(members, 0, x, algorithms::chain).status.has_value());
  members.groups[0].reset();
  members.arenas[0]->retire_left(std::chrono::steady_clock::now());
  std::array<RunResult, 3> results;
  on_threads(3, [&](plan::Rank rank) {
    std::vector<float> y(elements, -1);
    if (rank != 0) results[rank] = broadcast(members, rank, y, algorithms::chain);
  });
  for (plan::Rank const rank : {1u, 2u}) {
    REQUIRE(results[rank].status.has_error());
    CHECK(results[rank].status.error().code == EngineErrc::peer_lost);
  }
}

TEST_CASE("memory that a failed member changed is not used, also after the reason of its failure was given back") {
  SharedMembers members(2);
  auto const x = members.vector(0, elements, 1);
  REQUIRE(broadcast(members, 0, x, algorithms::centralized, 1ms).status.has_error());
  members.groups[0].reset();
  members.arenas[0]->retire_left(std::chrono::steady_clock::now());
  x[0] = 77;
  std::vector<float> y(elements, -1);
  auto const late = broadcast(members, 1, y, algorithms::centralized);
  REQUIRE(late.status.has_error());
  CHECK(late.culprits == std::vector<plan::Rank>{0});
}

TEST_CASE("a member that fails and leaves keeps its board while another one has not ended the call before") {
  for (bool const other_has_ended : {true, false}) {
    CAPTURE(other_has_ended);
    SharedMembers members(2);
    on_threads(2, [&](plan::Rank rank) { CHECK(sum(members, rank, 20s).status.has_value()); });
    if (!other_has_ended) members.board(1).ended = 0;
    REQUIRE(sum(members, 0, 1ms).status.has_error());
    members.groups[0].reset();
    CHECK(members.board(0).failed == 2);
    // By this number member 1 knows that what it sent was read.
    CHECK(members.lane(1, 0).consumed == (other_has_ended ? 0 : 1));
  }
}

TEST_CASE("a member that leaves its board to a late one says that it makes no further calls") {
  SharedMembers members(2);
  broadcast_and_leave(members, false);
  std::vector<float> y(elements, -1);
  REQUIRE(broadcast(members, 1, y, algorithms::centralized).status.has_value());
  CHECK(y == std::vector<float>(elements, 7));
  auto const result = sum(members, 1, 10s);
  REQUIRE(result.status.has_error());
  CHECK(result.status.error().code == EngineErrc::peer_lost);
  CHECK(mentions(result.status.error().detail, "rank 0 (w0) has left the group"));
  CHECK(result.culprits == std::vector<plan::Rank>{0});
}

TEST_CASE("a call that waits for a member that has left ends long before its time is over") {
  SharedMembers members(2);
  members.groups[1].reset();
  auto const result = sum(members, 0, 600s);
  REQUIRE(result.status.has_error());
  CHECK(mentions(result.status.error().detail, "lost rank 1 (w1) while reading its memory: it has left the group"));
  CHECK(result.culprits == std::vector<plan::Rank>{1});
}
