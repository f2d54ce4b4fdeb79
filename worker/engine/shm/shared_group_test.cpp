// Groups over shared memory: how they find each other, and every way in which a call can fail.
#include "worker/engine/shm/shared_group.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/testing/shared_members.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

struct Meeting {
  explicit Meeting(std::uint32_t ranks) : fleet(ranks, {}) {}
  std::unique_ptr<Group> join(plan::Rank rank, memory::Arena* arena) {
    return std::make_unique<Group>(fleet.membership("g", rank), fleet.plane(rank), cache,
                                   GroupMemory{&algorithms::direct, arena, &regions});
  }
  TcpFleet fleet;
  engine::PlanCache cache{1 << 20};
  memory::RegionRegistry regions;
};

CallOptions by(plan::Algorithm const& algorithm) {
  CallOptions options;
  options.algorithm = &algorithm;
  return options;
}

}  // namespace

TEST_CASE("members that share memory call over it, and a disagreement breaks the group") {
  Meeting meeting(3);
  std::atomic<int> right{0}, told{0}, broken{0}, shared{0};
  on_threads(3, [&](plan::Rank rank) {
    auto const arena = large_arena();
    auto const group = meeting.join(rank, arena.get());
    for (int call = 0; call < 60; ++call) {
      auto const elements = call % 3 == 0 ? 1u : call % 3 == 1 ? 5000u : 100000u;
      std::vector<float> x(elements, static_cast<float>(rank + 1)), y(elements);
      bool const in_place = call % 2 == 1;
      auto& to = in_place ? x : y;
      auto const result =
          group->all_reduce(std::as_bytes(std::span(x)), std::as_writable_bytes(std::span(to)), Dtype::f32,
                            ReduceOp::sum, by(call % 5 == 0 ? algorithms::ring : algorithms::allpairs));
      if (result.status.has_value() && to == std::vector<float>(elements, 6)) ++right;
    }
    if (group->path() == "shm") ++shared;
    std::vector<float> x(rank == 2 ? 50 : 100, 1);
    auto const bytes = std::as_writable_bytes(std::span(x));
    auto const odd = group->all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, by(algorithms::ring));
    if (odd.status.has_error() && odd.status.error().code == EngineErrc::plan_mismatch &&
        mentions(odd.status.error().detail, "f32[50]") && mentions(odd.status.error().detail, "f32[100]"))
      ++told;
    auto const after = group->all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, by(algorithms::ring));
    if (after.status.has_error() && mentions(after.status.error().detail, "broken")) ++broken;
  });
  CHECK(right == 180);
  CHECK(shared == 3);
  CHECK(told == 3);
  CHECK(broken == 3);
}

TEST_CASE("a call that only some members make is a disagreement, which blames nobody's memory") {
  Meeting meeting(3);
  std::mutex mutex;
  std::vector<Error> errors;
  on_threads(3, [&](plan::Rank rank) {
    auto const arena = large_arena();
    auto const group = meeting.join(rank, arena.get());
    std::vector<float> x(6, 1);
    auto const bytes = std::as_writable_bytes(std::span(x));
    auto const reduce = [&] {
      return group->run(Op::reduce, bytes, rank == 0 ? bytes : std::span<std::byte>(), Dtype::f32, ReduceOp::sum, 6,
                        by(algorithms::centralized));
    };
    auto result = group->all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, by(algorithms::mesh));
    if (rank != 0 && result.status.has_value()) result = reduce();
    if (result.status.has_value())
      result = group->all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, by(algorithms::mesh));
    if (result.status.has_value()) result = reduce();
    if (result.status.has_value()) return;
    std::lock_guard const lock(mutex);
    errors.push_back(result.status.error());
  });
  REQUIRE(!errors.empty());
  for (auto const& error : errors) {
    INFO(error.detail);
    CHECK(error.code == EngineErrc::plan_mismatch);
  }
}

TEST_CASE("where one member has no memory to share, all use links and know why") {
  Meeting meeting(3);
  std::atomic<int> right{0}, knows{0};
  on_threads(3, [&](plan::Rank rank) {
    auto const arena = large_arena();
    auto const group = meeting.join(rank, rank == 1 ? nullptr : arena.get());
    CHECK(group->path() == "unknown");
    std::vector<float> x(100, 1), y(100);
    auto const result = group->all_reduce(std::as_bytes(std::span(x)), std::as_writable_bytes(std::span(y)), Dtype::f32,
                                          ReduceOp::sum, by(algorithms::ring));
    if (result.status.has_value() && y[99] == 3 && group->path() == "links") ++right;
    auto const why = rank == 1 ? "this member has no memory" : "rank 1 (w1)";
    if (mentions(group->why_not_shared(), why)) ++knows;
  });
  CHECK(right == 3);
  CHECK(knows == 3);
}

TEST_CASE("a member that never calls is named when the time is over") {
  SharedMembers members(3);
  std::array<RunResult, 2> results;
  on_threads(2, [&](plan::Rank rank) {
    results[rank] =
        members.all_reduce(rank, members.vector(rank, 100, 1), members.vector(rank, 100, 0), algorithms::mesh, 50ms);
  });
  for (auto const& result : results) {
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::deadline_exceeded);
    CHECK(mentions(result.status.error().detail, "not finished after 50 ms: rank 2 (w2) never called"));
    CHECK(result.culprits == std::vector<plan::Rank>{2});
  }
}

TEST_CASE("a member whose process ends is named long before the time is over") {
  SharedMembers members(2);
  auto const input = members.vector(0, 100, 1), output = members.vector(0, 100, 0);
  members.groups[1].reset();
  members.board(1).failed = no_failure;  // a process that is killed does not give its board back
  members.arenas[1].reset();             // its lock is released with it, as in a process that is killed
  auto const result = members.all_reduce(0, input, output, algorithms::mesh);
  REQUIRE(result.status.has_error());
  CHECK(result.status.error().code == EngineErrc::peer_lost);
  CHECK(
      mentions(result.status.error().detail, "lost rank 1 (w1) while receiving message 1 of 1: its process has ended"));
  CHECK(result.culprits == std::vector<plan::Rank>{1});
}

TEST_CASE("a member whose pulse stands still is named, however long the call may take, one without a pulse is not") {
  for (auto const pulse : {7u, 0u}) {
    SharedMembers members(2, 1000ms);
    members.arenas[1]->mapping().head().pulse = pulse;
    auto const input = members.vector(0, 100, 1), output = members.vector(0, 100, 0);
    auto const result = members.all_reduce(0, input, output, algorithms::mesh, pulse != 0 ? 600s : 1500ms);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == (pulse != 0 ? EngineErrc::peer_lost : EngineErrc::deadline_exceeded));
    if (pulse != 0) CHECK(mentions(result.status.error().detail, "receiving message 1 of 1: no sign of life for "));
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("members that call different things and all wait to receive do not wait for the time to be over") {
  Meeting meeting(3);
  std::array<RunResult, 3> results;
  on_threads(3, [&](plan::Rank rank) {
    auto const arena = large_arena();
    auto const group = meeting.join(rank, arena.get());
    std::vector<float> x(100, 1), y(100);
    auto const input = std::as_bytes(std::span(x));
    auto const output = std::as_writable_bytes(std::span(y));
    auto options = by(algorithms::centralized);
    options.timeout = 600s;
    options.root = rank;  // each takes itself for the one that gets the sum
    results[rank] = group->run(Op::reduce, input, output, Dtype::f32, ReduceOp::sum, 100, options);
  });
  for (auto const& result : results) {
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::plan_mismatch);
  }
}

TEST_CASE("memory that is truncated under a call is an error, not a crash") {
  SharedMembers members(2);
  std::array<RunResult, 2> results;
  std::array<std::span<float>, 2> inputs, outputs;
  for (plan::Rank rank = 0; rank < 2; ++rank) {
    inputs[rank] = members.vector(rank, 1 << 20, 1);
    outputs[rank] = members.vector(rank, 1 << 20, 0);
  }
  REQUIRE(ftruncate(members.arenas[1]->mapping().descriptor(), 1 << 20) == 0);
  on_threads(2, [&](plan::Rank rank) {
    results[rank] = members.all_reduce(rank, inputs[rank], outputs[rank], algorithms::mesh, 5s);
  });
  for (auto const& result : results) {
    REQUIRE(result.status.has_error());
    CHECK(mentions(result.status.error().detail, "truncated"));
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("an impossible record ends the call with a description of it") {
  struct Wrong {
    RecordKind kind;
    std::uint32_t bytes;
    std::uint64_t offset;
  };
  for (auto const& wrong :
       {Wrong{RecordKind::reference, 400, ~std::uint64_t{0} - 10}, Wrong{RecordKind::reference, 400, 1u << 30},
        Wrong{RecordKind::inside, 401, 0}, Wrong{RecordKind::inside, 0, 0}, Wrong{RecordKind::inside, 398, 0},
        Wrong{RecordKind::landed, 400, 0}, Wrong{RecordKind{77}, 400, 0}}) {
    SharedMembers members(2);
    auto const input = members.vector(0, 100, 1), output = members.vector(0, 100, 0);
    std::thread liar([&] {
      // What a correct peer says of the call, with another value in it.
      auto result = members.all_reduce(1, members.vector(1, 100, 1), members.vector(1, 100, 0), algorithms::mesh, 20ms);
    });
    liar.join();  // member 1 has given up; its record is still there
    auto& record = members.lane(1, 0).records[0];
    REQUIRE(record.sequence == 1);
    record.kind = wrong.kind;
    record.bytes = wrong.bytes;
    record.offset = wrong.offset;
    auto const result = members.all_reduce(0, input, output, algorithms::mesh, 1s);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::protocol_error);
    CHECK(mentions(result.status.error().detail, std::to_string(wrong.bytes) + " bytes at"));
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("a small message that comes in two records is put together") {
  SharedMembers members(2);
  std::thread other([&] {
    auto result = members.all_reduce(1, members.vector(1, 2, 3), members.vector(1, 2, 0), algorithms::mesh, 20ms);
  });
  other.join();  // member 1 has given up; its record is still there
  auto& records = members.lane(1, 0).records;
  REQUIRE(records[0].sequence == 1);
  members.board(1).failed = no_failure;  // hides the failure
  records[0].bytes = records[1].bytes = sizeof(float);
  records[1].call = records[0].call;
  records[1].agreement = records[0].agreement;
  records[1].kind = records[0].kind;
  std::copy_n(std::as_bytes(std::span<float const>(std::array{5.0F})).begin(), sizeof(float),
              records[1].payload.begin());
  records[1].sequence = 2;
  auto const input = members.vector(0, 2, 1), output = members.vector(0, 2, 0);
  auto const result = members.all_reduce(0, input, output, algorithms::mesh, 1s);
  REQUIRE_FALSE(result.status.has_error());
  CHECK(output[0] == 4);
  CHECK(output[1] == 6);
}

TEST_CASE("memory in pieces is read and written in place, whatever pieces the others have") {
  for (auto const* algorithm : {&algorithms::allpairs, &algorithms::ring, &algorithms::tree, &algorithms::mesh}) {
    CAPTURE(algorithm->name);
    SharedMembers members(3);
    std::array<std::vector<std::span<float>>, 3> pieces;
    for (plan::Rank rank = 0; rank < 3; ++rank) {
      std::vector<std::size_t> const sizes = rank == 0   ? std::vector<std::size_t>{6000}
                                             : rank == 1 ? std::vector<std::size_t>{1, 1999, 3000, 1000}
                                                         : std::vector<std::size_t>{2500, 3500};
      for (auto const size : sizes) pieces[rank].push_back(members.vector(rank, size, static_cast<float>(rank + 1)));
    }
    on_threads(3, [&](plan::Rank rank) {
      CHECK_FALSE(members.all_reduce(rank, pieces[rank], *algorithm).status.has_error());
    });
    for (auto const& of_rank : pieces)
      for (auto const piece : of_rank) CHECK(std::ranges::all_of(piece, [](float x) { return x == 6; }));
  }
}

TEST_CASE("data that a failed member sent before is not used: it may have changed since") {
  for (std::size_t const elements : {1u, 100000u}) {
    CAPTURE(elements);
    SharedMembers members(2);
    auto const early = members.vector(0, elements, 1);
    auto const gave_up = members.all_reduce(0, early, members.vector(0, elements, 0), algorithms::mesh, 20ms);
    REQUIRE(gave_up.status.has_error());
    early[0] = 77;
    auto const late =
        members.all_reduce(1, members.vector(1, elements, 1), members.vector(1, elements, 0), algorithms::mesh, 1s);
    REQUIRE(late.status.has_error());
    CHECK(late.status.error().code == EngineErrc::deadline_exceeded);
    CHECK(late.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("a record that the peer has not consumed is not written again") {
  SharedMembers members(2);
  auto const call = [&](plan::Rank rank, std::chrono::milliseconds timeout) {
    return members.all_reduce(rank, members.vector(rank, 1, 1), members.vector(rank, 1, 0), algorithms::mesh, timeout);
  };
  for (std::uint32_t n = 0; n < records_per_lane; ++n)
    on_threads(2, [&](plan::Rank rank) { CHECK_FALSE(call(rank, 20s).status.has_error()); });
  auto& lane = members.lane(0, 1);
  lane.consumed = 0;
  CHECK(call(0, 20ms).status.error().code == EngineErrc::deadline_exceeded);
  CHECK(lane.records[0].sequence == 1);
}

TEST_CASE("a record lies in memory as docs/explanation/shared_memory.md shows") {
  SharedMembers members(2);
  auto const alone = members.all_reduce(1, members.vector(1, 1, 2), members.vector(1, 1, 0), algorithms::mesh, 20ms);
  CHECK(alone.status.error().code == EngineErrc::deadline_exceeded);
  auto const bytes = std::as_bytes(std::span(&members.lane(1, 0).records[0], 1));
  std::array<unsigned char, 36> shown{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
                                      0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40};
  std::copy_n(reinterpret_cast<unsigned char const*>(bytes.data()) + 12, 4, shown.begin() + 12);  // the agreement
  CHECK(std::equal(shown.begin(), shown.end(), reinterpret_cast<unsigned char const*>(bytes.data())));
}

TEST_CASE("only the failure notice stays of the board of a failed member") {
  SharedMembers members(2);
  auto const x = members.vector(0, 100, 1), y = members.vector(0, 100, 0);
  REQUIRE(members.all_reduce(0, x, y, algorithms::mesh, 1ms).status.has_error());
  auto const before = members.arenas[0]->used_bytes();
  members.groups[0].reset();
  CHECK(members.arenas[0]->used_bytes() + BoardLayout(2).board_bytes() <= before + 8192);
  CHECK(members.board(0).failed == 1);
  CHECK(members.board(0).failure_notice_bytes != 0);
}

TEST_CASE("members meet only those whose memory is what their cards say") {
  auto const arena = large_arena(), other = large_arena();
  std::vector<Peer> const peers{{0, "w0", 1, ""}, {1, "w1", 2, ""}};
  auto const group = SharedGroup::make(*arena, 0, peers).value();
  auto const theirs = SharedGroup::make(*other, 1, peers).value();
  memory::RegionRegistry regions;
  auto const refused = [&](std::function<void(SharedCard&)> const& change) {
    std::vector<SharedCard> cards{group->card(), theirs->card()};
    change(cards[1]);
    auto const met = group->meet(cards, regions);
    REQUIRE(met.has_error());
    CHECK(mentions(met.error().detail, "rank 1 (w1): "));
  };
  refused([](SharedCard& card) { card.ticket = {}; });
  refused([](SharedCard& card) { card.ticket.nonce[0] ^= 1; });
  refused([](SharedCard& card) { card.layout = 99; });
  refused([](SharedCard& card) { card.board_offset = ~std::uint64_t{0}; });
  refused([](SharedCard& card) { card.board_offset += 8; });
}

TEST_CASE("a member that leaves keeps its board while another is still in the call that has ended here") {
  for (bool const other_has_ended : {true, false}) {
    SharedMembers members(2);
    on_threads(2, [&](plan::Rank rank) {
      auto const x = members.vector(rank, 100, 1), y = members.vector(rank, 100, 0);
      static_cast<void>(members.all_reduce(rank, x, y, algorithms::mesh));
    });
    REQUIRE(members.board(1).ended == 1);
    if (!other_has_ended) members.board(1).ended = 0;
    members.groups[0].reset();
    // A retired board reads as zeros.
    CHECK(members.board(0).entered == (other_has_ended ? 0 : 1));
  }
}
