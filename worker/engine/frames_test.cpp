// What the engine says to peers that break the rules of docs/wire.md.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppet.hpp"
#include "worker/links/inquiry.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using links::FrameHeader;
using links::FrameType;

namespace {

// Rank 0 is real; the test plays rank 1. Messages of 6000 bytes each way, none of them eager.
class Impostor {
 public:
  explicit Impostor(std::uint64_t eager_bytes = 1024, std::uint64_t elements = 3000) : fleet_(options(eager_bytes)) {
    Case c;
    c.algorithm = &algorithms::ring;
    c.in_place = true;  // so that the second message waits for the first to be sent
    c.elements = elements;
    collective_.emplace(fleet_, c, fleet_.now());
    fleet_.impersonated = 1;
    fleet_.on_dial = [this](std::shared_ptr<links::Link> link) { from_rank_0.hold(std::move(link)); };
    to_rank_0.hold(fleet_.connect_stranger(0, {"w1", 101}));
    open_.token = spec().token;
    open_.fingerprint = spec().fingerprint;
    open_.channel_digest = digest_of(spec());
    open_.receiver_incarnation = 100;
    open_.eager_bytes = eager_bytes;
    open_.sender_rank = 1;
    open_.receiver_rank = 0;
  }

  [[nodiscard]] RunSpec& spec() { return collective_->spec(1); }
  [[nodiscard]] links::Open& open() { return open_; }
  [[nodiscard]] LoopbackFleet& fleet() { return fleet_; }

  void start_rank_0() {
    collective_->start(0);
    fleet_.let_move();
  }
  void send_open(std::uint64_t run = 1) { to_rank_0.send_open(run, 1, open_, "all_reduce sum f32[3000] ring of 2"); }
  void move() { fleet_.let_move(); }
  [[nodiscard]] bool rank_0_ended() const { return collective_->has_ended(0); }
  [[nodiscard]] EngineErrc code() const {
    return static_cast<EngineErrc>(collective_->result(0).status.error().code.value());
  }
  [[nodiscard]] std::string detail() const { return collective_->result(0).status.error().detail; }

  Puppet to_rank_0;    // the link that the test dialed: data goes to rank 0, grants come back
  Puppet from_rank_0;  // the link that rank 0 dialed

 private:
  static FleetOptions options(std::uint64_t eager_bytes) {
    FleetOptions options;
    options.ranks = 2;
    options.network = {1, 5000, 2000};
    options.eager_bytes = eager_bytes;
    options.early_runs = 4;
    return options;
  }

  LoopbackFleet fleet_;
  std::optional<Collective> collective_;
  links::Open open_;
};

FrameHeader header_of(FrameType type, std::uint64_t run = 1) {
  FrameHeader header;
  header.type = type;
  header.run = run;
  header.epoch = 1;
  return header;
}

// What is in it does not come to count.
void send_of_epoch_2(Puppet& to, FrameType type, std::size_t bytes) {
  auto header = header_of(type);
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
  CHECK_FALSE(peer.from_rank_0.find(FrameType::data));  // rank 0 was granted nothing
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
  auto const verdict = peer.to_rank_0.verdict(FrameType::abort);
  REQUIRE(verdict);
  CHECK(verdict->token == peer.open().token);
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

TEST_CASE("bad frames to the receiving side close the link, fail its runs and are named to both") {
  std::vector<Bad> const table{
      {"magic",
       [](Impostor& p) {
         auto h = header_of(FrameType::grant);
         h.magic = 7;
         p.to_rank_0.send(h);
       }},
      {"frame type 14", [](Impostor& p) { p.to_rank_0.send(header_of(static_cast<FrameType>(14))); }},
      {"flags 1",
       [](Impostor& p) {
         auto h = header_of(FrameType::data);
         h.length = 4;
         h.flags = 1;
         p.to_rank_0.send(h, std::vector<std::byte>(4));
       }},
      {"data frame with a length of 0", [](Impostor& p) { p.to_rank_0.send(header_of(FrameType::data)); }},
      {"data frame with a length of 4294967295",
       [](Impostor& p) {
         auto h = header_of(FrameType::data);
         h.length = 0xffffffff;
         p.to_rank_0.send(h);
       }},
      {"open frame with a length of 3",
       [](Impostor& p) {
         auto h = header_of(FrameType::open);
         h.length = 3;
         p.to_rank_0.send(h, std::vector<std::byte>(3));
       }},
      {"names a message or an offset",
       [](Impostor& p) {
         auto h = header_of(FrameType::abort);
         h.length = links::verdict_head_bytes;
         h.offset = 4;
         p.to_rank_0.send(h, std::vector<std::byte>(links::verdict_head_bytes));
       }},
      {"abort frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.to_rank_0, FrameType::abort, links::verdict_head_bytes); }},
      {"ask frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.to_rank_0, FrameType::ask, sizeof(links::Ask)); }},
      {"grant frame from the sending side", [](Impostor& p) { p.to_rank_0.send(header_of(FrameType::grant)); }},
      {"the message has 6000 bytes", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 0, 6004); }},
      {"expected byte 0", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 4, 4); }},
      {"the run has 2 messages", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 2, 0, 4); }},
      {"granted up to byte 0", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 1, 0, 4); }},
      {"elements have 4 bytes", [](Impostor& p) { p.to_rank_0.send_data(1, 1, 0, 0, 6); }},
      {"epoch 2", [](Impostor& p) { p.to_rank_0.send_data(1, 2, 0, 0, 4); }},
      {"data of run 77, which was never opened", [](Impostor& p) { p.to_rank_0.send_data(77, 1, 0, 0, 4); }},
      {"opened twice", [](Impostor& p) { p.send_open(); }},
      {"open frame for run 0", [](Impostor& p) { p.send_open(0); }},
      {"verdict code 999",
       [](Impostor& p) {
         auto h = header_of(FrameType::abort);
         h.length = links::verdict_head_bytes;
         std::vector<std::byte> bytes(links::verdict_head_bytes);
         bytes[8] = std::byte{0xe7};
         bytes[9] = std::byte{3};
         p.to_rank_0.send(h, bytes);
       }},
      {"more than 4 runs wait",
       [](Impostor& p) {
         for (std::uint64_t run = 10; run < 15; ++run) p.send_open(run);
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
    auto const word = peer.to_rank_0.verdict(FrameType::refuse);
    REQUIRE(word);
    CHECK(word->code == links::VerdictCode::protocol_error);
    CHECK(mentions(word->text, says));
    CHECK(peer.from_rank_0.verdict(FrameType::abort));  // the other link goes on, without this run
    CHECK_FALSE(peer.from_rank_0.is_closed());
  }
}

TEST_CASE("bad frames to the sending side close the link and fail its runs") {
  auto const grant = [](std::uint32_t message, std::uint64_t offset, std::uint64_t run = 1) {
    auto h = header_of(FrameType::grant, run);
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
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::abort, links::verdict_head_bytes); }},
      {"refuse frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::refuse, links::verdict_head_bytes); }},
      {"ask frame of epoch 2 for run 1, which is of epoch 1",
       [](Impostor& p) { send_of_epoch_2(p.from_rank_0, FrameType::ask, sizeof(links::Ask)); }},
      {"data frame from the receiving side", [](Impostor& p) { p.from_rank_0.send_data(1, 1, 0, 0, 4); }},
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

TEST_CASE("opens that disagree are refused; only a member's disagreement fails the run") {
  struct Wrong {
    links::VerdictCode code;
    bool fails_the_run;
    std::function<void(Impostor&)> act;
  };
  std::vector<Wrong> const table{
      {links::VerdictCode::forbidden, false, [](Impostor& p) { p.open().token = 1; }},
      {links::VerdictCode::forbidden, false, [](Impostor& p) { p.open().sender_rank = 0; }},
      {links::VerdictCode::forbidden, false, [](Impostor& p) { p.open().sender_rank = 9; }},
      {links::VerdictCode::epoch_fenced, false, [](Impostor& p) { p.open().receiver_incarnation = 99; }},
      {links::VerdictCode::plan_mismatch, true, [](Impostor& p) { p.open().fingerprint = 1; }},
      {links::VerdictCode::plan_mismatch, true, [](Impostor& p) { p.open().channel_digest = 1; }},
      {links::VerdictCode::plan_mismatch, true, [](Impostor& p) { p.open().receiver_rank = 1; }},
      {links::VerdictCode::plan_mismatch, true, [](Impostor& p) { p.open().eager_bytes += 1; }},
  };
  for (bool early : {false, true})
    for (auto const& wrong : table) {
      Impostor peer;
      wrong.act(peer);
      if (!early) peer.start_rank_0();
      peer.send_open();
      peer.to_rank_0.send_data(1, 1, 0, 0, 64);  // whatever it sends with it is dropped
      peer.move();
      if (early) peer.start_rank_0();
      auto const word = peer.to_rank_0.verdict(FrameType::refuse);
      REQUIRE(word);
      CHECK(word->code == wrong.code);
      CHECK(peer.rank_0_ended() == wrong.fails_the_run);
      CHECK_FALSE(peer.to_rank_0.is_closed());
    }
}

TEST_CASE("an open that was overheard is worth nothing on another link, whoever it says that it is") {
  struct Replay {
    links::VerdictCode code;
    Identity says;
    std::uint32_t epoch;
  };
  std::vector<Replay> const table{{links::VerdictCode::protocol_error, {"w1", 101}, 1},
                                  {links::VerdictCode::forbidden, {"w2", 102}, 1},
                                  {links::VerdictCode::epoch_fenced, {"w1", 99}, 1},
                                  {links::VerdictCode::epoch_fenced, {"w1", 101}, 2}};
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
    REQUIRE(other.verdict(FrameType::refuse));
    CHECK(other.verdict(FrameType::refuse)->code == replay.code);
    CHECK_FALSE(other.find(FrameType::grant));
    // The run takes from its own peer what it awaits, from the first byte on.
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
  auto header = header_of(FrameType::open);
  header.length = 47;
  other.send(header, std::vector<std::byte>(47));
  peer.move();
  CHECK(other.is_closed());
  CHECK_FALSE(peer.rank_0_ended());
  CHECK_FALSE(peer.to_rank_0.is_closed());
}

TEST_CASE("a rank that starts into a disagreement tells everyone who waits for it") {
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
  CHECK(waits.verdict(FrameType::abort)->code == links::VerdictCode::plan_mismatch);
}

TEST_CASE("an abort with a wrong token is ignored") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  links::VerdictBytes bytes;
  auto header = header_of(FrameType::abort);
  header.length = links::encode(links::Verdict{1, links::VerdictCode::aborted, {}, "so there"}, bytes);
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
  auto grant = header_of(FrameType::grant);
  grant.offset = 6000;
  peer.from_rank_0.send(grant);
  peer.move();
  CHECK_FALSE(peer.to_rank_0.is_closed());
  CHECK_FALSE(peer.from_rank_0.is_closed());
  CHECK(peer.to_rank_0.verdict(FrameType::abort)->text == "enough");
}

TEST_CASE("an open for a run that failed here is answered with the reason") {
  Impostor peer;
  peer.start_rank_0();
  peer.fleet().engine(0).abort(1, Error(EngineErrc::aborted, "enough"));
  peer.send_open();
  peer.move();
  CHECK(peer.to_rank_0.verdict(FrameType::abort)->text == "enough");
}

TEST_CASE("half a frame and then silence keeps nobody from ending") {
  Impostor peer;
  peer.start_rank_0();
  peer.send_open();
  peer.move();
  FrameHeader header = header_of(FrameType::data);
  header.length = 6000;
  peer.to_rank_0.send(header, std::vector<std::byte>(2500));
  peer.move();
  peer.fleet().pass(std::chrono::minutes(1));
  REQUIRE(peer.rank_0_ended());
  CHECK(peer.code() == EngineErrc::deadline_exceeded);
  CHECK(mentions(peer.detail(), "receiving message 1 of 2"));
}
