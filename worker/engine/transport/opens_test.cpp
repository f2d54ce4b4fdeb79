// Answers of the engine to a peer whose open does not fit the run.
#include <doctest/doctest.h>

#include <functional>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppets/impostor.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using links::FrameHeader;
using links::FrameType;

TEST_CASE("opens that disagree are refused; only a member's disagreement fails the run") {
  struct Wrong {
    links::FailureNoticeCode code;
    bool fails_the_run;
    std::function<void(Impostor&)> act;
  };
  std::vector<Wrong> const table{
      {links::FailureNoticeCode::forbidden, false, [](Impostor& p) { p.open().token = 1; }},
      {links::FailureNoticeCode::forbidden, false, [](Impostor& p) { p.open().sender_rank = 0; }},
      {links::FailureNoticeCode::forbidden, false, [](Impostor& p) { p.open().sender_rank = 9; }},
      {links::FailureNoticeCode::epoch_fenced, false, [](Impostor& p) { p.open().receiver_incarnation = 99; }},
      {links::FailureNoticeCode::plan_mismatch, true, [](Impostor& p) { p.open().fingerprint = 1; }},
      {links::FailureNoticeCode::plan_mismatch, true, [](Impostor& p) { p.open().channel_digest = 1; }},
      {links::FailureNoticeCode::plan_mismatch, true, [](Impostor& p) { p.open().receiver_rank = 1; }},
      {links::FailureNoticeCode::plan_mismatch, true, [](Impostor& p) { p.open().eager_bytes += 1; }},
  };
  for (bool early : {false, true})
    for (auto const& wrong : table) {
      Impostor peer;
      wrong.act(peer);
      if (!early) peer.start_rank_0();
      peer.send_open();
      peer.to_rank_0.send_data(1, 1, 0, 0, 64);  // data that comes with it is dropped
      peer.move();
      if (early) peer.start_rank_0();
      auto const word = peer.to_rank_0.failure_notice(FrameType::refuse);
      REQUIRE(word);
      CHECK(word->code == wrong.code);
      CHECK(peer.rank_0_ended() == wrong.fails_the_run);
      CHECK_FALSE(peer.to_rank_0.is_closed());
    }
}

TEST_CASE("an open that was overheard is worth nothing on another link, whoever its sender claims to be") {
  struct Replay {
    links::FailureNoticeCode code;
    Identity says;
    std::uint32_t epoch;
  };
  std::vector<Replay> const table{{links::FailureNoticeCode::protocol_error, {"w1", 101}, 1},
                                  {links::FailureNoticeCode::forbidden, {"w2", 102}, 1},
                                  {links::FailureNoticeCode::epoch_fenced, {"w1", 99}, 1},
                                  {links::FailureNoticeCode::epoch_fenced, {"w1", 101}, 2}};
  for (auto const& replay : table) {
    Impostor peer;
    peer.start_rank_0();
    peer.send_open();
    peer.move();
    Puppet other;
    other.hold(peer.fleet().connect_stranger(0, replay.says));
    other.send_open(1, replay.epoch, peer.open(), "all_reduce sum f32[3000] ring of 2");
    other.send_data(1, replay.epoch, 0, 0, 6000);
    peer.move();
    REQUIRE(other.failure_notice(FrameType::refuse));
    CHECK(other.failure_notice(FrameType::refuse)->code == replay.code);
    CHECK_FALSE(other.find(FrameType::grant));
    // The run accepts what it awaits from its own peer, from the first byte on.
    peer.to_rank_0.send_data(1, 1, 0, 0, 6000);
    peer.move();
    CHECK_FALSE(peer.rank_0_ended());
    CHECK_FALSE(peer.to_rank_0.is_closed());
  }
}

TEST_CASE("an open that was cut costs its own link, and no run") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  Puppet other;
  other.hold(peer.fleet().connect_stranger(0, {"w1", 101}));
  auto header = epoch_1_header(FrameType::open);
  header.length = 47;
  other.send(header, std::vector<std::byte>(47));
  peer.move();
  CHECK(other.is_closed());
  CHECK_FALSE(peer.rank_0_ended());
  CHECK_FALSE(peer.to_rank_0.is_closed());
}

TEST_CASE("a rank that starts into a disagreement tells all ranks that wait for it") {
  FleetOptions options;
  options.ranks = 3;
  LoopbackFleet fleet(options);
  Case c;
  c.algorithm = &algorithms::centralized;
  c.elements = 10;
  Collective collective(fleet, c, fleet.now());
  Puppet disagrees, waits;
  fleet.impersonated = 1;
  fleet.on_dial = [](auto const&) {};
  disagrees.hold(fleet.connect_stranger(0, {"w1", 101}));
  waits.hold(fleet.connect_stranger(0, {"w2", 102}));
  auto const& spec = collective.spec(0);
  disagrees.send_open(1, 1, {spec.token, spec.fingerprint + 1, 0, 100, 65536, 1, 0}, "something else");
  waits.send_open(1, 1, {spec.token, spec.fingerprint, 0, 100, 65536, 2, 0}, "the same");
  fleet.let_move();
  collective.start(0);
  fleet.let_move();
  REQUIRE(collective.has_ended(0));
  CHECK(waits.failure_notice(FrameType::abort)->code == links::FailureNoticeCode::plan_mismatch);
}

TEST_CASE("an open for a run that failed here is answered with the reason") {
  Impostor peer;
  peer.start_rank_0();
  peer.fleet().engine(0).abort(1, Error(EngineErrc::aborted, "enough"));
  peer.send_open();
  peer.move();
  CHECK(peer.to_rank_0.failure_notice(FrameType::abort)->text == "enough");
}
