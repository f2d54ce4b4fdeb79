// Answers of the engine to peers that break the rules for lent and borrowed memory.
#include <doctest/doctest.h>

#include <functional>

#include "tests/support/mentions.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/puppets/lending_impostor.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using links::FrameHeader;
using links::FrameType;

namespace {

struct Bad {
  std::string says;
  std::function<void(LendingImpostor&)> act;
};

void check_refused(LendingImpostor& peer, std::string const& says) {
  REQUIRE_MESSAGE(peer.rank_0_ended(), says);
  CHECK(peer.code() == EngineErrc::protocol_error);
  CHECK_MESSAGE(mentions(peer.detail(), says), peer.detail());
  CHECK(mentions(peer.detail(), "rank 1 (w1)"));
}

}  // namespace

TEST_CASE("the rules of a good peer: lend, be granted, show; borrow, be shown, tell what was read") {
  LendingImpostor peer;
  peer.start_rank_0();
  peer.open_lending();
  CHECK(peer.borrowed().value() == links::Borrow{{links::Way::in_place}, {}});
  auto const grant = peer.to_rank_0.find(FrameType::grant);
  REQUIRE(grant);
  CHECK(grant->header.offset == 6000);
  peer.show({4096, 2000});
  peer.show({8192, 4000}, 0, 2000);
  CHECK(peer.to_rank_0.find(FrameType::read));
  CHECK(peer.is_lent());
  CHECK(!peer.shown());
  peer.answer(links::Way::in_place);
  CHECK(!peer.shown());  // nothing is eager
  peer.grant(6000);
  CHECK(peer.shown().value().bytes == 6000);
  peer.read(4000);
  peer.read(6000);
  CHECK(!peer.to_rank_0.is_closed());
  CHECK(!peer.from_rank_0.is_closed());
  CHECK(!peer.rank_0_ended());
}

TEST_CASE("the rules of a peer that is written to: it is borrowed from, says so, makes room") {
  LendingImpostor peer;
  peer.start_rank_0();
  peer.open_lending();
  auto const before = peer.memory_of_rank_1();
  peer.answer(links::Way::written);
  CHECK(peer.told_written() == 0);  // nothing is eager
  peer.has_room({4096, 2000});
  CHECK(peer.told_written() == 2000);
  peer.has_room({8192, 4000}, 0, 2000);
  CHECK(peer.told_written() == 6000);
  auto const after = peer.memory_of_rank_1();
  for (std::size_t i = 0; i < after.size(); ++i) {
    bool const is_room = (i >= 4096 && i < 6096) || (i >= 8192 && i < 12192);
    if (!is_room) REQUIRE(after[i] == before[i]);
  }
  CHECK(!std::equal(after.begin() + 4096, after.begin() + 6096, before.begin() + 4096));
  CHECK(!peer.rank_0_ended());
}

TEST_CASE("impossible room closes the link, and fails the run; and so do writes without room") {
  auto const room = [](links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0) {
    return [=](LendingImpostor& p) { p.has_room(place, message, offset); };
  };
  std::vector<Bad> const all{
      {"it has 1048576 bytes", room({LendingImpostor::arena_bytes - 5996, 6000})},
      {"it has 1048576 bytes", room({~std::uint64_t{0} - 3, 6000})},
      {"the message has 6000 bytes", room({0, 6004})},
      {"the message has 6000 bytes", room({0, ~std::uint64_t{0} - 3})},
      {"the message has 6000 bytes", room({0, 0})},
      {"elements have 4 bytes", room({0, 5})},
      {"elements have 4 bytes", room({2, 8})},
      {"expected byte 0", room({0, 8}, 0, 8)},
      {"the run has 2 messages", room({0, 8}, 2)},
      {"which is written where there is room", [](LendingImpostor& p) { p.grant(6000); }},
      {"there was no room for it", [](LendingImpostor& p) { p.wrote(6000); }},
      {"nothing was borrowed", [](LendingImpostor& p) { p.read(4); }},
  };
  for (auto const& bad : all) {
    LendingImpostor peer;
    peer.start_rank_0();
    peer.open_lending();
    peer.answer(links::Way::written);
    REQUIRE(!peer.rank_0_ended());
    bad.act(peer);
    check_refused(peer, bad.says);
  }
  LendingImpostor lends_nothing;
  lends_nothing.start_rank_0();
  lends_nothing.answer(links::Way::written);
  check_refused(lends_nothing, "nothing of it was borrowed");
  LendingImpostor grants_early;
  grants_early.start_rank_0();
  grants_early.open_lending();
  grants_early.grant(6000);
  check_refused(grants_early, "before it was said how it is taken");
  LendingImpostor reads;
  reads.start_rank_0();
  reads.open_lending();
  reads.answer(links::Way::in_place);
  reads.has_room({0, 8});
  check_refused(reads, "it is not written there");
}

TEST_CASE("impossible places that are shown close the link, and fail the run") {
  std::vector<Bad> const all{
      {"it has 1048576 bytes",
       [](LendingImpostor& p) {
         p.show({LendingImpostor::arena_bytes - 5996, 6000});
       }},
      {"it has 1048576 bytes",
       [](LendingImpostor& p) {
         p.show({LendingImpostor::arena_bytes, 6000});
       }},
      {"it has 1048576 bytes",
       [](LendingImpostor& p) {
         p.show({~std::uint64_t{0} - 3, 6000});
       }},
      {"granted up to byte 6000",
       [](LendingImpostor& p) {
         p.show({0, 6004});
       }},
      {"granted up to byte 6000",
       [](LendingImpostor& p) {
         p.show({0, ~std::uint64_t{0} - 3});
       }},
      {"granted up to byte 6000",
       [](LendingImpostor& p) {
         p.show({0, 0});
       }},
      {"elements have 4 bytes",
       [](LendingImpostor& p) {
         p.show({0, 5});
       }},
      {"elements have 4 bytes",
       [](LendingImpostor& p) {
         p.show({2, 8});
       }},
      {"expected byte 0",
       [](LendingImpostor& p) {
         p.show({0, 8}, 0, 8);
       }},
      {"the run has 2 messages",
       [](LendingImpostor& p) {
         p.show({0, 8}, 2);
       }},
      {"granted up to byte 0",
       [](LendingImpostor& p) {
         p.show({0, 8}, 1);
       }},
      {"which nothing was borrowed for",
       [](LendingImpostor& p) {
         p.show({0, 8}, 0, 0, 99);
       }},
      {"it is read where it lies", [](LendingImpostor& p) { p.send_data(); }},
  };
  for (auto const& bad : all) {
    LendingImpostor peer;
    peer.start_rank_0();
    peer.open_lending();
    bad.act(peer);
    CHECK(peer.to_rank_0.is_closed());
    check_refused(peer, bad.says);
  }
}

TEST_CASE("memory is shown only to the peer that has borrowed it, on links that lend") {
  LendingImpostor no_gpu(false);
  no_gpu.start_rank_0();
  no_gpu.open_lending();
  CHECK(no_gpu.to_rank_0.is_closed());
  LendingImpostor refused;
  refused.gpu(0).gpu.open_nothing("another container");
  refused.start_rank_0();
  refused.open_lending();
  CHECK(refused.borrowed().value() == links::Borrow{{links::Way::refused}, "cuda:0: another container"});
  refused.show({0, 6000});
  CHECK(refused.to_rank_0.is_closed());
  check_refused(refused, "nothing was borrowed");
}

TEST_CASE("an impossible lend is refused with the reason, and the run goes on in frames") {
  std::vector<std::pair<std::string, std::function<void(links::Lend&)>>> const all{
      {"is of no memory", [](links::Lend& lend) { lend.handle = {}; }},
      {"were said to be there", [](links::Lend& lend) { lend.bytes += 4096; }},
      {"is not the arena that was meant", [](links::Lend& lend) { lend.proof_at += 256; }},
      {"proof is said to lie at byte", [](links::Lend& lend) { lend.proof_at = ~std::uint64_t{0}; }},
      {"has no peer access to GPU-9", [](links::Lend& lend) { links::set_uuid(lend, "GPU-9"); }},
  };
  for (auto const& [says, spoil] : all) {
    LendingImpostor peer;
    spoil(peer.lend);
    peer.start_rank_0();
    peer.open_lending();
    auto const borrow = peer.borrowed();
    REQUIRE(borrow);
    CHECK(borrow->head.way == links::Way::refused);
    CHECK_MESSAGE(mentions(borrow->why_not, says), borrow->why_not);
    peer.send_data();
    CHECK(!peer.to_rank_0.is_closed());
    CHECK(!peer.rank_0_ended());
  }
}

TEST_CASE("impossible frames about lent memory close the link, and fail the run") {
  std::vector<Bad> const all{
      {"2000 were shown", [](LendingImpostor& p) { p.read(2004); }},
      {"elements have 4 bytes", [](LendingImpostor& p) { p.read(3); }},
      {"0 were read before", [](LendingImpostor& p) { p.read(0); }},
      {"1000 were read before",
       [](LendingImpostor& p) {
         p.read(1000);
         p.read(1000);
       }},
      {"the run has 2 messages", [](LendingImpostor& p) { p.read(4, 2); }},
      {"which was never opened", [](LendingImpostor& p) { p.read(4, 0, 99); }},
      {"borrow of what was borrowed", [](LendingImpostor& p) { p.answer(links::Way::in_place); }},
      {"borrow frame that says what cannot be", [](LendingImpostor& p) { p.answer(static_cast<links::Way>(9)); }},
      {"borrow for run 99", [](LendingImpostor& p) { p.answer(links::Way::in_place, 99); }},
  };
  for (auto const& bad : all) {
    LendingImpostor peer;
    peer.start_rank_0();
    peer.answer(links::Way::in_place);
    peer.grant(2000);
    REQUIRE(peer.shown());
    bad.act(peer);
    CHECK(peer.from_rank_0.is_closed());
    CHECK(!peer.rank_0_ended());  // the rank cannot know what the peer still reads
    peer.pass(std::chrono::milliseconds(10'000));
    check_refused(peer, bad.says);
  }
}

TEST_CASE("a read frame where nothing is read closes the link") {
  LendingImpostor peer;
  peer.start_rank_0();
  peer.answer(links::Way::in_frames);
  peer.grant(2000);
  REQUIRE(peer.from_rank_0.find(FrameType::data));
  peer.read(2000);
  CHECK(peer.from_rank_0.is_closed());
  check_refused(peer, "nothing was borrowed");
}

TEST_CASE("where nothing may be lent, no frame about lending is accepted") {
  for (auto const type : {FrameType::borrow, FrameType::read, FrameType::returned}) {
    LendingImpostor peer(false);
    peer.start_rank_0();
    if (type == FrameType::borrow)
      peer.answer(links::Way::in_place);
    else
      peer.say(type);
    CHECK(peer.from_rank_0.is_closed());
    check_refused(peer, "frame on a link that lends nothing");
  }
}

TEST_CASE("memory that the peer has refused is lent to it again after half a minute") {
  LendingImpostor peer;
  peer.start_rank_0();
  REQUIRE(peer.is_lent());
  peer.answer(links::Way::refused);
  CHECK_FALSE(peer.lends_in_run(2));
  peer.pass(std::chrono::milliseconds(30'000));
  CHECK(peer.lends_in_run(3));
}
