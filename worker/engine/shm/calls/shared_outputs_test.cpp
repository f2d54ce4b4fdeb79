// Outputs that peers write to: after a failed call no peer reaches them any more.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/shm/shared_group.hpp"
#include "worker/engine/testing/shared_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;

TEST_CASE("an impossible list of pieces ends the call with a description of it") {
  for (auto const wrong : {PieceEntry{~std::uint64_t{0} - 8, 4096}, PieceEntry{1u << 30, 4096}, PieceEntry{4096, 0},
                           PieceEntry{4096, ~std::uint64_t{0}}, PieceEntry{4096, 2}}) {
    CAPTURE(wrong.offset);
    CAPTURE(wrong.bytes);
    SharedMembers members(2);
    auto const mine = members.vector(0, 4096, 1);
    std::vector<std::span<float>> const theirs{members.vector(1, 1024, 1), members.vector(1, 3072, 1)};
    std::thread liar([&] { auto result = members.all_reduce(1, theirs, algorithms::allpairs, 20ms); });
    liar.join();  // member 1 has given up; its record is still there
    auto& record = members.lane(1, 0).records[0];
    REQUIRE(record.kind == RecordKind::pieces);
    // A peer that lies about its list may have it anywhere.
    auto const list = members.vector(1, 1024, 0);
    std::memcpy(list.data(), &wrong, sizeof wrong);
    record.offset = members.arenas[1]->offset_of(std::as_bytes(list)).value();
    auto const result = members.all_reduce(0, {mine}, algorithms::allpairs, 1s);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::protocol_error);
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}

TEST_CASE("after a failure the place of a list of pieces is not used again: a late peer writes where it says") {
  SharedMembers members(2);
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
    SharedMembers members(2);
    std::vector<std::span<float>> const theirs{members.vector(0, 4096, 1), members.vector(0, 4096, 1)};
    REQUIRE(members.all_reduce(0, theirs, algorithms::allpairs, 10ms).status.has_error());
    members.board(0).failed = no_failure;  // hides the failure
    auto const list = members.lane(1, 0).landings[1].offset;
    std::memcpy(members.arenas[0]->mapping().at(list + sizeof wrong, sizeof wrong).data(), &wrong, sizeof wrong);
    std::memcpy(members.arenas[0]->mapping().at(list, sizeof wrong).data(), &wrong, sizeof wrong);
    auto const result = members.all_reduce(1, {members.vector(1, 8192, 1)}, algorithms::allpairs, 200ms);
    REQUIRE(result.status.has_error());
    CHECK(result.culprits == std::vector<plan::Rank>{0});
  }
}

TEST_CASE("after a failure no peer reaches the pieces of an output any more") {
  SharedMembers members(2);
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

TEST_CASE("an output that shares a page with other memory is offered to no peer, for it could not be withdrawn") {
  SharedMembers members(2);
  auto const small = members.vector(1, 700, 5), neighbour = members.vector(1, 16, 3);
  REQUIRE(members.all_reduce(1, {small}, algorithms::tree, 10ms).status.has_error());
  auto const region = members.regions.open(members.arenas[1]->ticket()).value();
  auto const offset = members.arenas[1]->offset_of(std::as_bytes(neighbour)).value();
  neighbour[0] = 4;
  CHECK(*reinterpret_cast<float const*>(region->mapping().at(offset, sizeof(float)).data()) == 4);
}

TEST_CASE("after a failure no peer reaches the output any more, and its contents are still there") {
  SharedMembers members(2);
  constexpr std::size_t elements = 1 << 20;
  auto const input = members.vector(0, elements, 1), output = members.vector(0, elements, 5);
  auto const offset = members.arenas[0]->offset_of(std::as_bytes(output)).value();
  auto const there = members.regions.open(members.arenas[0]->ticket()).value()->mapping().at(offset, elements * 4);
  auto const result = members.all_reduce(0, input, output, algorithms::allpairs, 10ms);
  REQUIRE(result.status.has_error());
  std::fill(there.begin(), there.end(), std::byte{7});
  CHECK(std::all_of(output.begin(), output.end(), [](float x) { return x == 5; }));
}

TEST_CASE("a withdrawn output is shared memory again once every member has failed") {
  for (bool const all_have_failed : {true, false}) {
    SharedMembers members(2);
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

TEST_CASE("a withdrawn output is shared memory again when the member that might write there has died") {
  SharedMembers members(2);
  auto const input = members.vector(0, 1 << 20, 1), output = members.vector(0, 1 << 20, 5);
  REQUIRE(members.all_reduce(0, input, output, algorithms::allpairs, 10ms).status.has_error());
  members.groups[1].reset();
  members.arenas[1].reset();
  members.groups[0].reset();
  auto const place = std::as_writable_bytes(output).data();
  members.arenas[0]->free(place);
  CHECK(std::as_writable_bytes(members.vector(0, 1 << 20, 0)).data() == place);
}
