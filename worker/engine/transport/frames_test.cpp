// Answers of the engine to peers that break the rules of docs/reference/wire.md.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppets/impostor.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"
#include "worker/links/frames/inquiry.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using links::FrameHeader;
using links::FrameType;

namespace {

// The contents do not matter.
void send_of_epoch_2(Puppet& to, FrameType type, std::size_t bytes) {
  auto header = epoch_1_header(type);
  header.epoch = 2;
  header.length = static_cast<std::uint32_t>(bytes);
  to.send(header, std::vector<std::byte>(bytes));
}

struct Bad {
  std::string says;
  std::function<void(Impostor&)> act;
};

}  // namespace

TEST_CASE("the rules of a good peer: open, be granted, send") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  auto const grant = peer.to_rank_0.find(FrameType::grant);
  REQUIRE(grant);
  CHECK(grant->header.message == 0);
  CHECK(grant->header.offset == 6000);
  peer.to_rank_0.send_data(1, 1, 0, 0, 6000);
  peer.move();
  CHECK_FALSE(peer.rank_0_ended());
  CHECK_FALSE(peer.to_rank_0.is_closed());
  CHECK(peer.from_rank_0.find(FrameType::open));
  CHECK_FALSE(peer.from_rank_0.find(FrameType::data));  // rank 0 got no grant
}

TEST_CASE("frames of a run that has failed are dropped, however many runs have ended since") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  auto& engine = peer.fleet().engine(0);
  for (std::uint64_t run = 1; run < 2000; ++run) engine.abort(run, Error(EngineErrc::aborted, "enough"));
  REQUIRE(peer.rank_0_ended());
  peer.to_rank_0.send_data(1, 1, 0, 0, 1000);
  auto grant = epoch_1_header(FrameType::grant);
  grant.offset = 1000;
  peer.from_rank_0.send(grant);
  peer.move();
  CHECK_FALSE(peer.to_rank_0.is_closed());
  CHECK_FALSE(peer.from_rank_0.is_closed());
}

TEST_CASE("a run that is aborted before it began here waits no more, whether its open has come or comes later") {
  Impostor peer;
  peer.start_rank_0();
  for (std::uint64_t run = 10; run < 30; ++run) {
    bool const opens_first = run % 2 == 0;
    if (opens_first) peer.send_open(run);
    peer.move();
    peer.fleet().engine(0).abort(run, Error(EngineErrc::aborted, "its coordinator has ended it"));
    if (!opens_first) peer.send_open(run);
    peer.to_rank_0.send_data(run, 1, 0, 0, 4);
    peer.move();
  }
  auto const failure_notice = peer.to_rank_0.failure_notice(FrameType::abort);
  REQUIRE(failure_notice);
  CHECK(failure_notice->token == peer.open().token);
  CHECK_FALSE(peer.to_rank_0.is_closed());
  CHECK_FALSE(peer.rank_0_ended());
}

TEST_CASE("messages that wait for each other may arrive in any order and in one go") {
  // Rank 1 sends its vector twice; rank 0 adds it to its own twice, segment by segment.
  plan::Algorithm const twice{.name = "twice",
                              .summary = "",
                              .check = [](plan::Spec const&) { return ok(); },
                              .chunks = [](plan::Spec const&) { return 1u; },
                              .scratch_chunks = [](plan::Spec const&, plan::Rank) { return 0u; },
                              .rounds = [](plan::Spec const&, plan::Rank) { return 2u; },
                              .emit =
                                  [](plan::Spec const&, plan::Rank rank, std::uint32_t round, plan::Sink& sink) {
                                    if (rank == 1)
                                      sink.send(0, plan::input(0));
                                    else
                                      sink.recv_reduce(1, round == 0 ? plan::input(0) : plan::output(0),
                                                       plan::output(0));
                                  }};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FleetOptions options;
    options.ranks = 2;
    options.network.seed = seed;
    LoopbackFleet fleet(options);
    Case c;
    c.algorithm = &twice;
    c.elements = 100;
    Collective collective(fleet, c, fleet.now());
    std::vector<float> ours(100), theirs(100);
    std::memcpy(ours.data(), collective.spec(0).input.data(), 400);
    std::memcpy(theirs.data(), collective.spec(1).input.data(), 400);
    auto const payload = collective.spec(1).input;

    collective.start(0);
    Puppet peer;
    peer.hold(fleet.connect_stranger(0, {"w1", 101}));
    auto const& spec = collective.spec(1);
    peer.send_open(1, 1, {spec.token, spec.fingerprint, digest_of(spec), 100, 65536, 1, 0}, "twice");
    auto const send = [&](std::uint32_t message, std::size_t from, std::size_t to) {
      FrameHeader header;
      header.run = 1;
      header.epoch = 1;
      header.message = message;
      header.offset = from;
      header.length = static_cast<std::uint32_t>(to - from);
      peer.send(header, {payload.begin() + static_cast<std::ptrdiff_t>(from),
                         payload.begin() + static_cast<std::ptrdiff_t>(to)});
    };
    send(1, 0, 64);  // must wait for message 0
    fleet.let_move();
    send(0, 0, 200);
    send(1, 64, 128);
    send(0, 200, 400);
    send(1, 128, 400);
    REQUIRE(collective.finish());
    REQUIRE(collective.result(0).status.has_value());
    for (std::size_t i = 0; i < 100; ++i) {
      float result = 0;
      std::memcpy(&result, collective.spec(0).output.data() + 4 * i, 4);
      REQUIRE(result == ours[i] + 2 * theirs[i]);
    }
  }
}

TEST_CASE("bad frames to the receiving side close the link, fail its runs and are named to both sides") {
  std::vector<Bad> const table{
      {"magic",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::grant);
         h.magic = 7;
         p.to_rank_0.send(h);
       }},
      {"frame type 15", [](Impostor& p) { p.to_rank_0.send(epoch_1_header(static_cast<FrameType>(15))); }},
      {"message frame with a length of 7",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::message);
         h.length = 7;
         p.to_rank_0.send(h, std::vector<std::byte>(7));
       }},
      {"flags 1",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::data);
         h.length = 4;
         h.flags = 1;
         p.to_rank_0.send(h, std::vector<std::byte>(4));
       }},
      {"data frame with a length of 0", [](Impostor& p) { p.to_rank_0.send(epoch_1_header(FrameType::data)); }},
      {"data frame with a length of 4294967295",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::data);
         h.length = 0xffffffff;
         p.to_rank_0.send(h);
       }},
      {"open frame with a length of 3",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::open);
         h.length = 3;
         p.to_rank_0.send(h, std::vector<std::byte>(3));
       }},
      {"names a message or an offset",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::abort);
         h.length = links::failure_notice_head_bytes;
         h.offset = 4;
         p.to_rank_0.send(h, std::vector<std::byte>(links::failure_notice_head_bytes));
       }},
      {"abort frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.to_rank_0, FrameType::abort, links::failure_notice_head_bytes); }},
      {"ask frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.to_rank_0, FrameType::ask, sizeof(links::Ask)); }},
      {"grant frame from the sending side", [](Impostor& p) { p.to_rank_0.send(epoch_1_header(FrameType::grant)); }},
      {"the message has 6000 bytes", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 0, 6004); }},
      {"expected byte 0", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 4, 4); }},
      {"the run has 2 messages", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 2, 0, 4); }},
      {"granted up to byte 0", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 1, 0, 4); }},
      {"elements have 4 bytes", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 0, 6); }},
      {"epoch 2", [](Impostor& p) { p.to_rank_0.send_data(1, 2, 0, 0, 4); }},
      {"data of run 77, which was never opened", [](Impostor& p) { p.to_rank_0.send_data(77, 1, 0, 0, 4); }},
      {"opened twice", [](Impostor& p) { p.send_open(); }},
      {"open frame for run 0", [](Impostor& p) { p.send_open(0); }},
      {"failure notice code 999",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::abort);
         h.length = links::failure_notice_head_bytes;
         std::vector<std::byte> bytes(links::failure_notice_head_bytes);
         bytes[8] = std::byte{0xe7};
         bytes[9] = std::byte{3};
         p.to_rank_0.send(h, bytes);
       }},
      {"more than 1024 ungranted bytes of run 10",
       [](Impostor& p) {
         p.send_open(10);
         for (std::uint64_t at = 0; at < 8192; at += 1024) p.to_rank_0.send_data(10, 1, 0, at, 1024);
       }},
  };
  for (auto const& [says, act] : table) {
    CAPTURE(says);
    Impostor peer;
    peer.start_rank_0();
    peer.send_open();
    peer.move();
    act(peer);
    peer.move();
    REQUIRE(peer.rank_0_ended());
    CHECK(peer.code() == EngineErrc::protocol_error);
    CHECK_MESSAGE(mentions(peer.detail(), says), peer.detail());
    CHECK(mentions(peer.detail(), "rank 1 (w1)"));
    CHECK(peer.to_rank_0.is_closed());
    auto const word = peer.to_rank_0.failure_notice(FrameType::refuse);
    REQUIRE(word);
    CHECK(word->code == links::FailureNoticeCode::protocol_error);
    CHECK(mentions(word->text, says));
    CHECK(peer.from_rank_0.failure_notice(FrameType::abort));  // the other link goes on, without this run
    CHECK_FALSE(peer.from_rank_0.is_closed());
  }
}

TEST_CASE("bad frames to the sending side close the link and fail its runs") {
  auto const grant = [](std::uint32_t message, std::uint64_t offset, std::uint64_t run = 1) {
    auto h = epoch_1_header(FrameType::grant, run);
    h.message = message;
    h.offset = offset;
    return h;
  };
  std::vector<Bad> const table{
      {"grant for run 5, which was never opened", [&](Impostor& p) { p.from_rank_0.send(grant(0, 4, 5)); }},
      {"the run has 2 messages", [&](Impostor& p) { p.from_rank_0.send(grant(2, 4)); }},
      {"the message has 6000 bytes", [&](Impostor& p) { p.from_rank_0.send(grant(0, 6004)); }},
      {"100 were granted before",
       [&](Impostor& p) {
         p.from_rank_0.send(grant(0, 100));
         p.from_rank_0.send(grant(0, 100));
       }},
      {"up to byte 4: epoch 2",
       [&](Impostor& p) {
         auto of_another_epoch = grant(0, 4);
         of_another_epoch.epoch = 2;
         p.from_rank_0.send(of_another_epoch);
       }},
      {"abort frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::abort, links::failure_notice_head_bytes); }},
      {"refuse frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::refuse, links::failure_notice_head_bytes); }},
      {"ask frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::ask, sizeof(links::Ask)); }},
      {"data frame from the receiving side", [](Impostor& p) { p.from_rank_0.send_data(1, 1, 0, 0, 4); }},
      {"message frame from the receiving side",
       [](Impostor& p) {
         auto h = epoch_1_header(FrameType::message);
         h.length = 8;
         p.from_rank_0.send(h, std::vector<std::byte>(8));
       }},
      {"open frame from the receiving side", [](Impostor& p) { p.from_rank_0.send_open(1, 1, p.open(), "nonsense"); }},
  };
  for (auto const& [says, act] : table) {
    CAPTURE(says);
    Impostor peer;
    peer.start_rank_0();
    act(peer);
    peer.move();
    REQUIRE(peer.rank_0_ended());
    CHECK(peer.code() == EngineErrc::protocol_error);
    CHECK_MESSAGE(mentions(peer.detail(), says), peer.detail());
    CHECK(peer.from_rank_0.is_closed());
  }
}

TEST_CASE("an abort with a wrong token is ignored") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  links::FailureNoticeBytes bytes;
  auto header = epoch_1_header(FrameType::abort);
  header.length = links::encode(links::FailureNotice{1, links::FailureNoticeCode::aborted, {}, "so there"}, bytes);
  peer.to_rank_0.send(header, {bytes.begin(), bytes.begin() + header.length});
  peer.from_rank_0.send(header, {bytes.begin(), bytes.begin() + header.length});
  peer.move();
  CHECK_FALSE(peer.rank_0_ended());
  CHECK_FALSE(peer.to_rank_0.is_closed());
}

TEST_CASE("frames for a run that has ended here are dropped, and the link stays") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  peer.to_rank_0.send_data(1, 1, 0, 0, 1000);
  peer.fleet().engine(0).abort(1, Error(EngineErrc::aborted, "enough"));
  peer.to_rank_0.send_data(1, 1, 0, 1000, 4000);
  auto grant = epoch_1_header(FrameType::grant);
  grant.offset = 6000;
  peer.from_rank_0.send(grant);
  peer.move();
  CHECK_FALSE(peer.to_rank_0.is_closed());
  CHECK_FALSE(peer.from_rank_0.is_closed());
  CHECK(peer.to_rank_0.failure_notice(FrameType::abort)->text == "enough");
}

TEST_CASE("half a frame and then silence prevents no rank from ending") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  FrameHeader header = epoch_1_header(FrameType::data);
  header.length = 6000;
  peer.to_rank_0.send(header, std::vector<std::byte>(2500));
  peer.move();
  peer.fleet().pass(std::chrono::minutes(1));
  REQUIRE(peer.rank_0_ended());
  CHECK(peer.code() == EngineErrc::deadline_exceeded);
  CHECK(mentions(peer.detail(), "receiving message 1 of 2"));
}
