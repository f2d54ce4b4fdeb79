// Small messages from a peer that breaks the rules, and refuses of small messages.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/mentions.hpp"
#include "worker/engine/testing/message_members.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using links::FrameType;

namespace {

// A message frame of rank 1, as the test wants it.
void send_frame(Puppet& to, std::uint64_t token, std::uint64_t sequence, std::uint32_t sender, std::size_t content) {
  links::FrameHeader header;
  header.type = FrameType::message;
  header.epoch = 1;
  header.run = token;
  header.message = 5;
  header.length = static_cast<std::uint32_t>(sizeof(links::MessageHead) + content);
  header.offset = sequence;
  links::MessageHead const head{sender, 0};
  std::vector<std::byte> payload(header.length, std::byte{7});
  std::memcpy(payload.data(), &head, sizeof head);
  to.send(header, payload);
}

constexpr std::uint64_t token = 4711;

}  // namespace

TEST_CASE("a small message of a worker that is not the rank it claims, or that was sent before, is refused") {
  struct Wrong {
    std::string says;
    std::uint64_t sequence;
    std::uint32_t sender;
  };
  for (auto const& [says, sequence, sender] :
       {Wrong{"w1 is not rank 2 of g", 7, 2}, Wrong{"w1 is not rank 0 of g", 7, 0},
        Wrong{"w1 is not rank 9 of g", 7, 9}, Wrong{"rank 1 (w1) has sent message 0 before", 0, 1}}) {
    CAPTURE(says);
    MessageMembers members(options_of(3));
    std::vector<std::byte> got(4), other(4);
    Puppet stranger;
    stranger.hold(members.fleet.connect_stranger(0, {"w1", 101}));
    auto const receive = members.receive(0, 1, 5, got);
    auto const waits = members.receive(0, 2, 6, other);
    send_frame(stranger, token, 0, 1, 4);
    members.fleet.let_move();
    REQUIRE(is_well(receive));
    CHECK(got == std::vector<std::byte>(4, std::byte{7}));
    send_frame(stranger, token, sequence, sender, 4);
    members.fleet.let_move();
    auto const notice = stranger.failure_notice(FrameType::refuse);
    REQUIRE(notice);
    CHECK(notice->token == token);
    CHECK(notice->text == says);
    CHECK_FALSE(stranger.is_closed());
    CHECK_FALSE(waits->has_value());
  }
}

TEST_CASE("a refuse of small messages counts only with the token of their epoch, also in place of a run") {
  struct Refuse {
    std::uint64_t run, token;
  };
  for (auto const& [run, of_token] : {Refuse{token, token + 1}, Refuse{token + 1, token}, Refuse{token, token}}) {
    bool const is_right = run == of_token;
    MessageMembers members(options_of(2));
    members.fleet.impersonated = 1;
    Puppet peer;
    members.fleet.on_dial = [&](std::shared_ptr<links::Link> link) { peer.hold(std::move(link)); };
    auto const first = members.send(0, 1, 5, pattern(4, 1));  // dials
    members.fleet.let_move();
    CHECK(is_well(members.send(0, 1, 5, pattern(4, 2))));
    members.fleet.let_move();
    auto const frame = peer.find(FrameType::message);
    REQUIRE(frame);
    CHECK(frame->header.run == token);
    CHECK(frame->header.message == 5);
    CHECK(frame->header.offset == 1);
    links::FailureNotice notice;
    notice.token = of_token;
    notice.text = "no use for it";
    links::FailureNoticeBytes bytes;
    auto refuse = frame->header;
    refuse.type = FrameType::refuse;
    refuse.run = run;
    refuse.message = 0;
    refuse.offset = 0;
    refuse.length = links::encode(notice, bytes);
    peer.send(refuse, {bytes.begin(), bytes.begin() + refuse.length});
    members.fleet.let_move();
    auto const next = members.send(0, 1, 5, pattern(4, 3));
    REQUIRE(next->has_value());
    CHECK(is_well(next) == !is_right);
    if (is_right) CHECK(mentions(text(next), "no use for it"));
  }
}

TEST_CASE("an early failure of an epoch is not forgotten because another epoch fails again and again") {
  MessageMembers members(options_of(2));
  ConnectionOwner& engine = members.fleet.engine(1);
  engine.message_failed(token, 1, {EngineErrc::aborted, "the message was given up", {}, {}});
  for (int i = 0; i < 100; ++i) engine.message_failed(token + 1, 1, {EngineErrc::peer_lost, "lost", {}, {}});
  std::vector<std::byte> got(16);
  auto const receive = members.receive(1, 0, 5, got);
  REQUIRE(receive->has_value());
  CHECK(code(receive) == EngineErrc::aborted);
  CHECK(mentions(text(receive), "the message was given up"));
}
