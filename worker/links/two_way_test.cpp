#include "worker/links/two_way.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "worker/links/frames/errc.hpp"
#include "worker/links/loopback.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

// Sends data frames of given runs and records what arrives.
class User final : public LinkHandler {
 public:
  void send(std::uint64_t run, std::size_t bytes) {
    to_send.push_back({run, std::vector<std::byte>(bytes, static_cast<std::byte>(run))});
  }

  bool next_frame(OutFrame& frame) override {
    if (given == to_send.size()) return false;
    auto const& [run, payload] = to_send[given++];
    frame.header = {};
    frame.header.run = run;
    frame.header.length = static_cast<std::uint32_t>(payload.size());
    frame.payload = payload;
    return true;
  }
  void frame_sent(FrameHeader const& header) override {
    CHECK(header.flags == 0);
    sent.push_back(header.run);
  }
  Status frame_arrives(FrameHeader const& header) override {
    CHECK(header.flags == 0);
    if (header.run == refused_run) return Error(LinkErrc::bad_frame, "not this one");
    arrived.push_back(header.run);
    return ok();
  }
  [[nodiscard]] bool awaits_coalesced_frame(FrameHeader const& open) const override {
    CHECK(open.flags == 0);
    return takes_coalesced_frames;
  }
  bool coalesced_frame_arrives(CoalescedFrame const& coalesced_frame) override {
    CHECK((coalesced_frame.open.flags == 0 && coalesced_frame.data.flags == 0));
    coalesced_frames.push_back(coalesced_frame.open.run);
    rested_after = false;
    return true;
  }
  void frame_is_corrupt(Error const&) override { is_corrupt = true; }
  std::span<std::byte> payload_space() override { return space; }
  void payload_at(std::span<std::byte const>) override { FAIL("a stream has no payloads in memory"); }
  void payload_withdrawn() override { FAIL("a stream goes on"); }
  Status payload_arrived(std::size_t bytes) override {
    auto const is_wrong = [this](std::byte byte) { return byte != static_cast<std::byte>(arrived.back()); };
    CHECK(std::none_of(space.begin(), space.begin() + static_cast<std::ptrdiff_t>(bytes), is_wrong));
    rested_after = false;
    received += bytes;
    return ok();
  }
  void link_rests() override { rested_after = true; }
  void link_closed(Error why) override { closed = why; }

  struct Message {
    std::uint64_t run;
    std::vector<std::byte> payload;
  };
  std::deque<Message> to_send;
  std::size_t given = 0;
  std::vector<std::uint64_t> sent, arrived;
  bool takes_coalesced_frames = true;
  std::vector<std::uint64_t> coalesced_frames;
  std::uint64_t refused_run = 0;
  std::vector<std::byte> space = std::vector<std::byte>(1000);
  std::size_t received = 0;
  bool rested_after = true;
  bool is_corrupt = false;
  std::optional<Error> closed;
};

struct End {
  TwoWay links;
  User there, back;
  explicit End(std::shared_ptr<Link> whole) : links(two_way(std::move(whole))) {}
  void start() {
    links.there->start(there);
    links.back->start(back);
  }
};

struct Connected {
  explicit Connected(LoopbackOptions options = {}) : network(options) {
    auto [here, there] = network.connect();
    dialer.emplace(std::move(here));
    acceptor.emplace(std::move(there));
    dialer->start();
    acceptor->start();
  }
  void let_move() {
    while (network.step()) {}
  }
  LoopbackNetwork network;
  std::optional<End> dialer, acceptor;
};

}  // namespace

TEST_CASE("messages go both ways on one connection, each to the end of its own link") {
  for (auto const framing : {Framing::plain, Framing::checksummed})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Connected pair({.seed = seed, .pipe_bytes = 300, .framing = framing});
      for (std::uint64_t run = 1; run <= 5; ++run) {
        pair.dialer->there.send(run, 2000);
        pair.dialer->back.send(10 + run, 0);
        pair.acceptor->there.send(20 + run, 0);
        pair.acceptor->back.send(30 + run, 3000);
      }
      for (auto* end : {&*pair.dialer, &*pair.acceptor}) end->links.there->flush();
      pair.let_move();
      CHECK(pair.acceptor->there.arrived == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
      CHECK(pair.acceptor->back.arrived == std::vector<std::uint64_t>{11, 12, 13, 14, 15});
      CHECK(pair.dialer->there.arrived == std::vector<std::uint64_t>{21, 22, 23, 24, 25});
      CHECK(pair.dialer->back.arrived == std::vector<std::uint64_t>{31, 32, 33, 34, 35});
      CHECK(pair.acceptor->there.received == 10000);
      CHECK(pair.dialer->back.received == 15000);
      CHECK(pair.dialer->there.sent == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
      CHECK(pair.acceptor->back.sent == std::vector<std::uint64_t>{31, 32, 33, 34, 35});
      for (auto* end : {&*pair.dialer, &*pair.acceptor}) CHECK((end->there.rested_after && end->back.rested_after));
    }
}

TEST_CASE("coalesced frames go to the end of their own link as well") {
  std::vector<std::byte> const opening(sizeof(Open), std::byte{7}), payload(12, std::byte{7});
  auto const coalesced_frame_of = [&](std::uint64_t run) {
    CoalescedFrame coalesced_frame;
    coalesced_frame.open.type = FrameType::open;
    coalesced_frame.open.run = coalesced_frame.data.run = run;
    coalesced_frame.open.length = static_cast<std::uint32_t>(opening.size());
    coalesced_frame.opening = opening;
    coalesced_frame.data.length = static_cast<std::uint32_t>(payload.size());
    coalesced_frame.payload = payload;
    return coalesced_frame;
  };
  for (bool const takes : {true, false}) {
    std::vector<std::uint64_t> there, back;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {  // some are cut on the way
      Connected pair({.seed = seed});
      pair.acceptor->there.takes_coalesced_frames = pair.dialer->back.takes_coalesced_frames = takes;
      auto const first = pair.dialer->links.there->send_coalesced_frame(coalesced_frame_of(7));
      auto const second = pair.acceptor->links.back->send_coalesced_frame(coalesced_frame_of(7));
      REQUIRE((first != Taken::nothing && second != Taken::nothing));
      pair.let_move();
      // Each user gets frame_sent() only for its own frames.
      CHECK((first == Taken::whole) == pair.dialer->there.sent.empty());
      CHECK((second == Taken::whole) == pair.acceptor->back.sent.empty());
      CHECK((pair.dialer->back.sent.empty() && pair.acceptor->there.sent.empty()));
      auto const came = [](User const& user) { return user.coalesced_frames.size() + user.arrived.size() / 2; };
      CHECK(came(pair.acceptor->there) == 1);
      CHECK(came(pair.dialer->back) == 1);
      CHECK((pair.acceptor->there.rested_after && pair.dialer->back.rested_after));
      there.insert(there.end(), pair.acceptor->there.coalesced_frames.begin(),
                   pair.acceptor->there.coalesced_frames.end());
      back.insert(back.end(), pair.dialer->back.coalesced_frames.begin(), pair.dialer->back.coalesced_frames.end());
    }
    CHECK(there.empty() != takes);
    CHECK(back.empty() != takes);
  }
  Connected pair;
  pair.dialer->links.there->close();
  CHECK(pair.dialer->links.there->send_coalesced_frame(coalesced_frame_of(1)) == Taken::nothing);
  CHECK(pair.dialer->links.back->send_coalesced_frame(coalesced_frame_of(1)) == Taken::nothing);
}

TEST_CASE("small messages go to the end of their own link as well") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Connected pair({.seed = seed});
    std::vector<std::byte> const content(12, std::byte{7});
    MessageFrame message{{}, {0x07070707, 0x07070707}, content};
    message.header.type = FrameType::message;
    message.header.run = 7;
    message.header.length = static_cast<std::uint32_t>(sizeof message.head + content.size());
    REQUIRE(pair.dialer->links.there->send_message(message));
    REQUIRE(pair.acceptor->links.back->send_message(message));
    pair.let_move();
    CHECK(pair.acceptor->there.arrived == std::vector<std::uint64_t>{7});
    CHECK(pair.dialer->back.arrived == std::vector<std::uint64_t>{7});
    CHECK(pair.acceptor->there.received == sizeof message.head + content.size());
    CHECK((pair.acceptor->back.arrived.empty() && pair.dialer->there.arrived.empty()));
    pair.dialer->links.back->close();
    CHECK_FALSE(pair.dialer->links.there->send_message(message));
  }
}

TEST_CASE("nothing moves before both links of an end are started") {
  LoopbackNetwork network({});
  auto [here, there] = network.connect();
  End dialer(std::move(here)), acceptor(std::move(there));
  dialer.start();
  dialer.there.send(1, 10);
  dialer.links.there->flush();
  acceptor.links.there->start(acceptor.there);
  while (network.step()) {}
  CHECK(acceptor.there.arrived.empty());
  acceptor.links.back->start(acceptor.back);
  while (network.step()) {}
  CHECK(acceptor.there.arrived == std::vector<std::uint64_t>{1});
}

TEST_CASE("closing one link closes both, and the user of the other is told") {
  Connected pair;
  pair.dialer->there.send(1, 10);  // the link tries to write the last frames of both
  pair.dialer->back.send(2, 10);
  pair.dialer->links.there->close();
  CHECK(!pair.dialer->there.closed);
  REQUIRE(pair.dialer->back.closed);
  CHECK(pair.dialer->back.closed->code == LinkErrc::broken);
  pair.let_move();
  CHECK(pair.acceptor->there.arrived == std::vector<std::uint64_t>{1});
  CHECK(pair.acceptor->back.arrived == std::vector<std::uint64_t>{2});
  for (auto const* user : {&pair.acceptor->there, &pair.acceptor->back}) {
    REQUIRE(user->closed);
    CHECK(user->closed->code == LinkErrc::closed);
  }
  pair.dialer->links.back->close();  // a second close has no effect
}

TEST_CASE("the reason for which one link is closed is told to the user of the other") {
  Connected pair;
  pair.acceptor->links.back->close_for(Error(LinkErrc::bad_frame, "not like this"));
  REQUIRE(pair.acceptor->there.closed);
  CHECK(pair.acceptor->there.closed->code == LinkErrc::bad_frame);
  CHECK(pair.acceptor->there.closed->detail == "not like this");
}

TEST_CASE("a link that is started after its connection was closed ends at once") {
  LoopbackNetwork network({});
  auto [here, there] = network.connect();
  End dialer(std::move(here));
  dialer.links.there->start(dialer.there);
  dialer.links.there->close();
  dialer.links.back->start(dialer.back);
  REQUIRE(dialer.back.closed);
  CHECK(dialer.back.closed->code == LinkErrc::broken);
}

TEST_CASE("a frame that one user refuses ends both links") {
  Connected pair;
  pair.acceptor->back.refused_run = 7;
  pair.dialer->back.send(7, 0);
  pair.dialer->links.back->flush();
  pair.let_move();
  for (auto const* user : {&pair.acceptor->there, &pair.acceptor->back}) {
    REQUIRE(user->closed);
    CHECK(user->closed->code == LinkErrc::bad_frame);
  }
}

TEST_CASE("a frame that was changed is reported to the users of both links") {
  Connected pair({.framing = Framing::checksummed});
  pair.network.corrupt_at_read(1);
  pair.dialer->there.send(1, 100);
  pair.dialer->links.there->flush();
  pair.let_move();
  CHECK(pair.acceptor->there.is_corrupt);
  CHECK(pair.acceptor->back.is_corrupt);
  CHECK(pair.acceptor->there.closed->code == LinkErrc::corrupt_frame);
}
