// Groups over shared memory: how they find each other, and every way in which a call can fail.
#include "worker/engine/shared_group.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/group.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

std::unique_ptr<memory::Arena> make_arena() {
  auto region = memory::SharedRegion::create(memory::random_ticket(1u << 30));
  return std::make_unique<memory::Arena>(std::move(region.value()));
}

// Members that have met, each of which is called by the test.
class Members {
 public:
  explicit Members(std::uint32_t ranks) {
    std::vector<Peer> peers;
    for (plan::Rank rank = 0; rank < ranks; ++rank) peers.push_back({rank, "w" + std::to_string(rank), rank + 1, ""});
    std::vector<SharedCard> cards;
    for (plan::Rank rank = 0; rank < ranks; ++rank) {
      arenas.push_back(make_arena());
      groups.push_back(SharedGroup::make(*arenas[rank], rank, peers).value());
      cards.push_back(groups[rank]->card());
    }
    for (auto& group : groups) REQUIRE(group->meet(cards, regions).has_value());
    cards_ = cards;
  }

  // Memory of the arena, all elements with this value.
  std::span<float> vector(plan::Rank rank, std::size_t elements, float value) {
    auto const block = arenas[rank]->allocate(elements * sizeof(float)).value();
    std::span const numbers(reinterpret_cast<float*>(block.data()), elements);
    std::fill(numbers.begin(), numbers.end(), value);
    return numbers;
  }

  RunResult all_reduce(plan::Rank rank, std::span<float> input, std::span<float> output,
                       plan::Algorithm const& algorithm, std::chrono::milliseconds timeout = 20s) {
    plan::Spec const spec{.op = Op::all_reduce,
                          .algorithm = std::string(algorithm.name),
                          .ranks = static_cast<std::uint32_t>(groups.size())};
    auto program = std::make_shared<plan::Program const>(plan::build(algorithm, spec, rank).value());
    auto const call =
        SharedCall::make(program, {input.size(), {}, {}}, Dtype::f32, ReduceOp::sum, input.size(), *arenas[rank])
            .value();
    return groups[rank]->run(*call, 1, "a sum of " + std::to_string(input.size()), std::as_bytes(input),
                             std::as_writable_bytes(output), timeout);
  }

  // In place, of memory in pieces.
  RunResult all_reduce(plan::Rank rank, std::vector<std::span<float>> const& pieces, plan::Algorithm const& algorithm,
                       std::chrono::milliseconds timeout = 20s) {
    std::uint64_t elements = 0;
    std::vector<std::span<std::byte>> memory;
    for (auto const piece : pieces) {
      elements += piece.size();
      memory.push_back(std::as_writable_bytes(piece));
    }
    plan::Spec const spec{.op = Op::all_reduce,
                          .algorithm = std::string(algorithm.name),
                          .ranks = static_cast<std::uint32_t>(groups.size()),
                          .in_place = true};
    auto program = std::make_shared<plan::Program const>(plan::build(algorithm, spec, rank).value());
    auto const call =
        SharedCall::make(program, {elements, {}, {}}, Dtype::f32, ReduceOp::sum, elements, *arenas[rank]).value();
    return groups[rank]->run_in_pieces(*call, 1, "a sum of " + std::to_string(elements), {}, memory, timeout, nullptr);
  }

  // The lane that carries what `sender` says to `receiver`.
  Lane& lane(plan::Rank sender, plan::Rank receiver) {
    BoardLayout const layout(static_cast<std::uint32_t>(groups.size()));
    auto const at = cards_[receiver].board_offset + layout.lane_at(sender);
    return *reinterpret_cast<Lane*>(arenas[receiver]->mapping().at(at, layout.lane_bytes()).data());
  }

  BoardHead& board(plan::Rank rank) {
    auto const bytes = arenas[rank]->mapping().at(cards_[rank].board_offset, sizeof(BoardHead));
    return *reinterpret_cast<BoardHead*>(bytes.data());
  }

  std::vector<std::unique_ptr<memory::Arena>> arenas;
  memory::RegionBook regions;
  std::vector<std::unique_ptr<SharedGroup>> groups;

 private:
  std::vector<SharedCard> cards_;
};

void on_threads(std::uint32_t ranks, std::function<void(plan::Rank)> const& what) {
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < ranks; ++rank) threads.emplace_back([&what, rank] { what(rank); });
  for (auto& thread : threads) thread.join();
}

struct Meeting {
  explicit Meeting(std::uint32_t ranks) : fleet(ranks, {}) {}
  std::unique_ptr<Group> join(plan::Rank rank, memory::Arena* arena) {
    return std::make_unique<Group>(fleet.membership("g", rank), fleet.plane(rank), cache,
                                   GroupMemory{&algorithms::direct, arena, &regions});
  }
  TcpFleet fleet;
  engine::PlanCache cache{1 << 20};
  memory::RegionBook regions;
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
    auto const arena = make_arena();
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

TEST_CASE("where one member has no memory to share, all use links and know why") {
  Meeting meeting(3);
  std::atomic<int> right{0}, knows{0};
  on_threads(3, [&](plan::Rank rank) {
    auto const arena = make_arena();
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
  Members members(3);
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
  Members members(2);
  auto const input = members.vector(0, 100, 1), output = members.vector(0, 100, 0);
  members.groups[1].reset();
  members.arenas[1].reset();  // its lock goes with it, as in a process that is killed
  auto const result = members.all_reduce(0, input, output, algorithms::mesh);
  REQUIRE(result.status.has_error());
  CHECK(result.status.error().code == EngineErrc::peer_lost);
  CHECK(
      mentions(result.status.error().detail, "lost rank 1 (w1) while receiving message 1 of 1: its process has ended"));
  CHECK(result.culprits == std::vector<plan::Rank>{1});
}

TEST_CASE("memory that is truncated under a call is an error, not a crash") {
  Members members(2);
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

TEST_CASE("what cannot be in a record ends the call with what it was") {
  struct Wrong {
    RecordKind kind;
    std::uint32_t bytes;
    std::uint64_t offset;
  };
  for (auto const& wrong :
       {Wrong{RecordKind::reference, 400, ~std::uint64_t{0} - 10}, Wrong{RecordKind::reference, 400, 1u << 30},
        Wrong{RecordKind::inside, 401, 0}, Wrong{RecordKind::inside, 0, 0}, Wrong{RecordKind::inside, 398, 0},
        Wrong{RecordKind::landed, 400, 0}, Wrong{RecordKind{77}, 400, 0}}) {
    Members members(2);
    auto const input = members.vector(0, 100, 1), output = members.vector(0, 100, 0);
    std::thread liar([&] {
      // What a sound peer says of the call, with something else in it.
      auto result = members.all_reduce(1, members.vector(1, 100, 1), members.vector(1, 100, 0), algorithms::mesh, 20ms);
    });
    liar.join();  // it has given up; its record is still there
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
  Members members(2);
  std::thread other([&] {
    auto result = members.all_reduce(1, members.vector(1, 2, 3), members.vector(1, 2, 0), algorithms::mesh, 20ms);
  });
  other.join();  // it has given up; its record is still there
  auto& records = members.lane(1, 0).records;
  REQUIRE(records[0].sequence == 1);
  members.board(1).failed = 0;  // as far as is known
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

TEST_CASE("what lies in pieces is read and written where it lies, however the others have theirs") {
  for (auto const* algorithm : {&algorithms::allpairs, &algorithms::ring, &algorithms::tree, &algorithms::mesh}) {
    CAPTURE(algorithm->name);
    Members members(3);
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

TEST_CASE("a list of pieces that cannot be ends the call with what is wrong with it") {
  for (auto const wrong : {PieceEntry{~std::uint64_t{0} - 8, 4096}, PieceEntry{1u << 30, 4096}, PieceEntry{4096, 0},
                           PieceEntry{4096, ~std::uint64_t{0}}, PieceEntry{4096, 2}}) {
    CAPTURE(wrong.offset);
    CAPTURE(wrong.bytes);
    Members members(2);
    auto const mine = members.vector(0, 4096, 1);
    std::vector<std::span<float>> const theirs{members.vector(1, 1024, 1), members.vector(1, 3072, 1)};
    std::thread liar([&] { auto result = members.all_reduce(1, theirs, algorithms::allpairs, 20ms); });
    liar.join();  // it has given up; its record is still there
    auto& record = members.lane(1, 0).records[0];
    REQUIRE(record.kind == RecordKind::pieces);
    // Whoever lies about its list has it where it likes.
    auto const list = members.vector(1, 1024, 0);
    std::memcpy(list.data(), &wrong, sizeof wrong);
    record.offset = members.arenas[1]->offset_of(std::as_bytes(list)).value();
    auto const result = members.all_reduce(0, {mine}, algorithms::allpairs, 1s);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::protocol_error);
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("what a member that has failed sent before is not taken for its part: it may have changed since") {
  for (std::size_t const elements : {1u, 100000u}) {
    CAPTURE(elements);
    Members members(2);
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

TEST_CASE("after a failure the place of a list of pieces is not used again: a late peer writes where it says") {
  Members members(2);
  std::vector<std::span<float>> const pieces{members.vector(0, 4096, 5), members.vector(0, 2048, 5)};
  REQUIRE(members.all_reduce(0, pieces, algorithms::allpairs, 10ms).status.has_error());
  auto const& landing = members.lane(1, 0).landings[1];
  REQUIRE(landing.message == 2);
  REQUIRE(landing.kind == LandingKind::pieces);
  for (int i = 0; i < 1000; ++i) {
    auto const offset = members.arenas[0]->offset_of(members.arenas[0]->allocate(64).value()).value();
    REQUIRE((offset + 64 <= landing.offset || landing.offset + 2 * sizeof(PieceEntry) <= offset));
  }
}

TEST_CASE("a peer that wants its message where there is no memory for elements ends the call") {
  for (auto const wrong : {PieceEntry{1u << 30, 4096}, PieceEntry{8193, 4096}, PieceEntry{8192, 2}}) {
    CAPTURE(wrong.offset);
    Members members(2);
    std::vector<std::span<float>> const theirs{members.vector(0, 4096, 1), members.vector(0, 4096, 1)};
    REQUIRE(members.all_reduce(0, theirs, algorithms::allpairs, 10ms).status.has_error());
    members.board(0).failed = 0;  // as far as is known
    auto const list = members.lane(1, 0).landings[1].offset;
    std::memcpy(members.arenas[0]->mapping().at(list + sizeof wrong, sizeof wrong).data(), &wrong, sizeof wrong);
    std::memcpy(members.arenas[0]->mapping().at(list, sizeof wrong).data(), &wrong, sizeof wrong);
    auto const result = members.all_reduce(1, {members.vector(1, 8192, 1)}, algorithms::allpairs, 200ms);
    REQUIRE(result.status.has_error());
    CHECK(result.culprits == std::vector<plan::Rank>{0});
  }
}

TEST_CASE("after a failure nobody reaches the pieces of an output any more") {
  Members members(2);
  std::vector<std::span<float>> const pieces{members.vector(0, 4096, 5), members.vector(0, 2048, 5)};
  std::vector<std::span<std::byte>> there;
  for (auto const piece : pieces) {
    auto const offset = members.arenas[0]->offset_of(std::as_bytes(piece)).value();
    auto const region = members.regions.open(members.arenas[0]->ticket()).value();
    there.push_back(region->mapping().at(offset, piece.size_bytes()));
  }
  REQUIRE(members.all_reduce(0, pieces, algorithms::allpairs, 10ms).status.has_error());
  for (auto const piece : there) std::ranges::fill(piece, std::byte{7});
  for (auto const piece : pieces) CHECK(std::ranges::all_of(piece, [](float x) { return x == 5; }));
}

TEST_CASE("an output that shares a page with others' memory is offered to nobody, for it could not be withdrawn") {
  Members members(2);
  auto const small = members.vector(1, 700, 5), neighbour = members.vector(1, 16, 3);
  REQUIRE(members.all_reduce(1, {small}, algorithms::tree, 10ms).status.has_error());
  auto const region = members.regions.open(members.arenas[1]->ticket()).value();
  auto const offset = members.arenas[1]->offset_of(std::as_bytes(neighbour)).value();
  neighbour[0] = 4;
  CHECK(*reinterpret_cast<float const*>(region->mapping().at(offset, sizeof(float)).data()) == 4);
}

TEST_CASE("a record that the peer has not consumed is not written again") {
  Members members(2);
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

TEST_CASE("a record lies in memory as docs/shared_memory.md shows") {
  Members members(2);
  auto const alone = members.all_reduce(1, members.vector(1, 1, 2), members.vector(1, 1, 0), algorithms::mesh, 20ms);
  CHECK(alone.status.error().code == EngineErrc::deadline_exceeded);
  auto const bytes = std::as_bytes(std::span(&members.lane(1, 0).records[0], 1));
  std::array<unsigned char, 36> shown{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
                                      0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40};
  std::copy_n(reinterpret_cast<unsigned char const*>(bytes.data()) + 12, 4, shown.begin() + 12);  // the agreement
  CHECK(std::equal(shown.begin(), shown.end(), reinterpret_cast<unsigned char const*>(bytes.data())));
}

TEST_CASE("after a failure nobody reaches the output any more, and its contents are still there") {
  Members members(2);
  constexpr std::size_t elements = 1 << 20;
  auto const input = members.vector(0, elements, 1), output = members.vector(0, elements, 5);
  auto const offset = members.arenas[0]->offset_of(std::as_bytes(output)).value();
  auto const there = members.regions.open(members.arenas[0]->ticket()).value()->mapping().at(offset, elements * 4);
  auto const result = members.all_reduce(0, input, output, algorithms::allpairs, 10ms);
  REQUIRE(result.status.has_error());
  std::fill(there.begin(), there.end(), std::byte{7});
  CHECK(std::all_of(output.begin(), output.end(), [](float x) { return x == 5; }));
}

TEST_CASE("an output that was withdrawn is shared memory again once every member has failed") {
  for (bool const all_have_failed : {true, false}) {
    Members members(2);
    constexpr std::size_t elements = 1 << 20;
    auto const input = members.vector(0, elements, 1), output = members.vector(0, elements, 5);
    auto const x = members.vector(1, elements, 1), y = members.vector(1, elements, 5);
    REQUIRE(members.all_reduce(0, input, output, algorithms::allpairs, 10ms).status.has_error());
    if (all_have_failed) REQUIRE(members.all_reduce(1, x, y, algorithms::allpairs).status.has_error());
    auto const place = std::as_writable_bytes(output).data();
    members.arenas[0]->free(place);
    CHECK(std::as_writable_bytes(members.vector(0, elements, 0)).data() != place);
    members.groups[0].reset();
    CHECK((std::as_writable_bytes(members.vector(0, elements, 0)).data() == place) == all_have_failed);
  }
}

TEST_CASE("an output that was withdrawn is shared memory again when the member that might write there has died") {
  Members members(2);
  auto const input = members.vector(0, 1 << 20, 1), output = members.vector(0, 1 << 20, 5);
  REQUIRE(members.all_reduce(0, input, output, algorithms::allpairs, 10ms).status.has_error());
  members.groups[1].reset();
  members.arenas[1].reset();
  members.groups[0].reset();
  auto const place = std::as_writable_bytes(output).data();
  members.arenas[0]->free(place);
  CHECK(std::as_writable_bytes(members.vector(0, 1 << 20, 0)).data() == place);
}

TEST_CASE("of the board of a member that has failed only why stays") {
  Members members(2);
  auto const x = members.vector(0, 100, 1), y = members.vector(0, 100, 0);
  REQUIRE(members.all_reduce(0, x, y, algorithms::mesh, 1ms).status.has_error());
  auto const before = members.arenas[0]->used_bytes();
  members.groups[0].reset();
  CHECK(members.arenas[0]->used_bytes() + BoardLayout(2).board_bytes() <= before + 8192);
  CHECK(members.board(0).failed == 1);
  CHECK(members.board(0).verdict_bytes != 0);
}

TEST_CASE("members meet only those whose memory is what they say") {
  auto const arena = make_arena(), other = make_arena();
  std::vector<Peer> const peers{{0, "w0", 1, ""}, {1, "w1", 2, ""}};
  auto const group = SharedGroup::make(*arena, 0, peers).value();
  auto const theirs = SharedGroup::make(*other, 1, peers).value();
  memory::RegionBook regions;
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
    Members members(2);
    on_threads(2, [&](plan::Rank rank) {
      auto const x = members.vector(rank, 100, 1), y = members.vector(rank, 100, 0);
      static_cast<void>(members.all_reduce(rank, x, y, algorithms::mesh));
    });
    REQUIRE(members.board(1).ended == 1);
    if (!other_has_ended) members.board(1).ended = 0;
    members.groups[0].reset();
    // A board that was given back reads as zeros.
    CHECK(members.board(0).entered == (other_has_ended ? 0 : 1));
  }
}
