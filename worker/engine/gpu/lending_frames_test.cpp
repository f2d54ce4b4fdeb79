// What the engine says to peers that break the rules for memory that is lent and borrowed.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/errc.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using links::FrameHeader;
using links::FrameType;

namespace {

constexpr std::uint64_t arena_bytes = 1 << 20;
constexpr std::uint64_t eager_bytes = 1024;

// Rank 0 is real and on a GPU; the test plays rank 1, on a GPU of its own. Messages of 6000 bytes each way.
class Impostor {
 public:
  explicit Impostor(bool lends = true) : gpus_(doubles()), fleet_(options(gpus_, lends)) {
    collective_.emplace(fleet_, ring(), fleet_.now());
    fleet_.impersonated = 1;
    fleet_.on_dial = [this](std::shared_ptr<links::Link> link) { from_rank_0.hold(std::move(link)); };
    to_rank_0.hold(fleet_.connect_stranger(0, {"w1", 101}));
    auto const lent = gpus_[1]->unit.lend(101).value();
    lend = {.handle = lent.handle, .bytes = lent.bytes, .proof_at = lent.proof_at};
    links::set_uuid(lend, lent.uuid);
  }

  void start_rank_0() {
    collective_->start(0);
    fleet_.let_move();
  }
  void open_lending() {
    links::OpenBytes bytes;
    FrameHeader header;
    header.type = FrameType::open;
    header.flags = links::lends_flag;
    header.run = 1;
    header.epoch = 1;
    auto const used = links::encode(open_of(collective_->spec(1), eager_bytes), "", bytes);
    header.length = links::append(lend, used, bytes);
    to_rank_0.send(header, {bytes.begin(), bytes.begin() + header.length});
    fleet_.let_move();
  }
  void show(links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0, std::uint64_t run = 1) {
    auto header = header_of(FrameType::lies, run);
    header.message = message;
    header.offset = offset;
    send(to_rank_0, header, place);
  }
  void answer(links::Way way, std::uint64_t run = 1) {
    auto header = header_of(FrameType::borrow, run);
    send(from_rank_0, header, links::BorrowHead{way});
  }
  void grant(std::uint64_t up_to) {
    auto header = header_of(FrameType::grant, 1);
    header.offset = up_to;
    from_rank_0.send(header);
    fleet_.let_move();
  }
  void read(std::uint64_t up_to, std::uint32_t message = 0, std::uint64_t run = 1) {
    auto header = header_of(FrameType::read, run);
    header.message = message;
    header.offset = up_to;
    from_rank_0.send(header);
    fleet_.let_move();
  }
  void has_room(links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0) {
    auto header = header_of(FrameType::room, 1);
    header.message = message;
    header.offset = offset;
    send(from_rank_0, header, place);
  }
  void wrote(std::uint64_t up_to) {
    auto header = header_of(FrameType::wrote, 1);
    header.offset = up_to;
    to_rank_0.send(header);
    fleet_.let_move();
  }
  // How far it says that the message was written.
  [[nodiscard]] std::uint64_t told_written() const {
    std::uint64_t up_to = 0;
    for (auto const& frame : from_rank_0.received())
      if (frame.header.type == FrameType::wrote && frame.header.message == 0) up_to = frame.header.offset;
    return up_to;
  }
  void say(FrameType type) {
    from_rank_0.send(header_of(type, 1));
    fleet_.let_move();
  }
  // Rank 0 begins another run, whose open the peer gets.
  [[nodiscard]] bool lends_in_run(std::uint64_t run) {
    auto c = ring();
    c.run = run;
    later_.push_back(std::make_unique<Collective>(fleet_, c, fleet_.now()));
    later_.back()->start(0);
    fleet_.let_move();
    auto const& received = from_rank_0.received();
    auto const open = std::find_if(received.begin(), received.end(), [run](auto const& frame) {
      return frame.header.type == FrameType::open && frame.header.run == run;
    });
    REQUIRE(open != received.end());
    return open->header.flags == links::lends_flag;
  }
  void send_data() {
    to_rank_0.send_data(1, 1, 0, 0, 6000);
    fleet_.let_move();
  }
  [[nodiscard]] std::optional<links::Borrow> borrowed() const {
    auto const frame = to_rank_0.find(FrameType::borrow);
    return frame ? std::optional(links::decode_borrow(frame->payload).value()) : std::nullopt;
  }
  [[nodiscard]] std::optional<links::Place> shown() const {
    auto const frame = from_rank_0.find(FrameType::lies);
    return frame ? std::optional(links::decode_place(frame->payload).value()) : std::nullopt;
  }
  [[nodiscard]] bool is_lent() const {
    auto const open = from_rank_0.find(FrameType::open);
    return open && open->header.flags == links::lends_flag;
  }
  [[nodiscard]] std::vector<std::byte> memory_of_rank_1() const {
    auto const all = gpus_[1]->gpu.behind(gpus_[1]->unit.arena_if_any()->bytes());
    return {all.begin(), all.end()};
  }
  [[nodiscard]] Double& gpu(plan::Rank rank) { return *gpus_[rank]; }
  [[nodiscard]] bool rank_0_ended() const { return collective_->has_ended(0); }
  [[nodiscard]] std::string detail() const { return collective_->result(0).status.error().detail; }
  [[nodiscard]] EngineErrc code() const {
    return static_cast<EngineErrc>(collective_->result(0).status.error().code.value());
  }
  void pass(std::chrono::milliseconds time) {
    fleet_.pass(time);
    fleet_.let_move();
  }

  links::Lend lend;
  Puppet to_rank_0, from_rank_0;

 private:
  static Case ring() {
    Case c;
    c.algorithm = &algorithms::ring;
    c.in_place = true;  // so that the second message waits for the first to be read
    c.elements = 3000;
    return c;
  }
  static Doubles doubles() {
    devices::GpuLimits const limits{.arena_bytes = arena_bytes};
    return {std::make_shared<Double>(0, limits, 1), std::make_shared<Double>(0, limits, 2)};
  }
  static FleetOptions options(Doubles const& gpus, bool lends) {
    FleetOptions options;
    options.network = {1, 5000, 2000};
    options.eager_bytes = eager_bytes;
    options.gpus = gpus;
    options.lends_gpu_memory = lends;
    return options;
  }
  static FrameHeader header_of(FrameType type, std::uint64_t run) {
    FrameHeader header;
    header.type = type;
    header.run = run;
    header.epoch = 1;
    return header;
  }
  template <class Payload>
  void send(Puppet& puppet, FrameHeader header, Payload const& payload) {
    auto const bytes = std::as_bytes(std::span(&payload, 1));
    header.length = static_cast<std::uint32_t>(bytes.size());
    puppet.send(header, {bytes.begin(), bytes.end()});
    fleet_.let_move();
  }

  Doubles const gpus_;
  LoopbackFleet fleet_;
  std::optional<Collective> collective_;
  std::vector<std::unique_ptr<Collective>> later_;
};

struct Bad {
  std::string says;
  std::function<void(Impostor&)> act;
};

void check_refused(Impostor& peer, std::string const& says) {
  REQUIRE_MESSAGE(peer.rank_0_ended(), says);
  CHECK(peer.code() == EngineErrc::protocol_error);
  CHECK_MESSAGE(mentions(peer.detail(), says), peer.detail());
  CHECK(mentions(peer.detail(), "rank 1 (w1)"));
}

}  // namespace

TEST_CASE("the rules of a good peer: lend, be granted, show; borrow, be shown, tell what was read") {
  Impostor peer;
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

TEST_CASE("the rules of a peer that is written to: borrowed from, say so, make room") {
  Impostor peer;
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

TEST_CASE("room that cannot be closes the link, and fails the run; and so does what was written without any") {
  auto const room = [](links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0) {
    return [=](Impostor& p) { p.has_room(place, message, offset); };
  };
  std::vector<Bad> const all{
      {"it has 1048576 bytes", room({arena_bytes - 5996, 6000})},
      {"it has 1048576 bytes", room({~std::uint64_t{0} - 3, 6000})},
      {"the message has 6000 bytes", room({0, 6004})},
      {"the message has 6000 bytes", room({0, ~std::uint64_t{0} - 3})},
      {"the message has 6000 bytes", room({0, 0})},
      {"elements have 4 bytes", room({0, 5})},
      {"elements have 4 bytes", room({2, 8})},
      {"expected byte 0", room({0, 8}, 0, 8)},
      {"the run has 2 messages", room({0, 8}, 2)},
      {"which is written where there is room", [](Impostor& p) { p.grant(6000); }},
      {"there was no room for it", [](Impostor& p) { p.wrote(6000); }},
      {"nothing was borrowed", [](Impostor& p) { p.read(4); }},
  };
  for (auto const& bad : all) {
    Impostor peer;
    peer.start_rank_0();
    peer.open_lending();
    peer.answer(links::Way::written);
    REQUIRE(!peer.rank_0_ended());
    bad.act(peer);
    check_refused(peer, bad.says);
  }
  Impostor lends_nothing;
  lends_nothing.start_rank_0();
  lends_nothing.answer(links::Way::written);
  check_refused(lends_nothing, "nothing of it was borrowed");
  Impostor grants_early;
  grants_early.start_rank_0();
  grants_early.open_lending();
  grants_early.grant(6000);
  check_refused(grants_early, "before it was said how it is taken");
  Impostor reads;
  reads.start_rank_0();
  reads.open_lending();
  reads.answer(links::Way::in_place);
  reads.has_room({0, 8});
  check_refused(reads, "it is not written there");
}

TEST_CASE("what is shown and cannot be closes the link, and fails the run") {
  std::vector<Bad> const all{
      {"it has 1048576 bytes",
       [](Impostor& p) {
         p.show({arena_bytes - 5996, 6000});
       }},
      {"it has 1048576 bytes",
       [](Impostor& p) {
         p.show({arena_bytes, 6000});
       }},
      {"it has 1048576 bytes",
       [](Impostor& p) {
         p.show({~std::uint64_t{0} - 3, 6000});
       }},
      {"granted up to byte 6000",
       [](Impostor& p) {
         p.show({0, 6004});
       }},
      {"granted up to byte 6000",
       [](Impostor& p) {
         p.show({0, ~std::uint64_t{0} - 3});
       }},
      {"granted up to byte 6000",
       [](Impostor& p) {
         p.show({0, 0});
       }},
      {"elements have 4 bytes",
       [](Impostor& p) {
         p.show({0, 5});
       }},
      {"elements have 4 bytes",
       [](Impostor& p) {
         p.show({2, 8});
       }},
      {"expected byte 0",
       [](Impostor& p) {
         p.show({0, 8}, 0, 8);
       }},
      {"the run has 2 messages",
       [](Impostor& p) {
         p.show({0, 8}, 2);
       }},
      {"granted up to byte 0",
       [](Impostor& p) {
         p.show({0, 8}, 1);
       }},
      {"which nothing was borrowed for",
       [](Impostor& p) {
         p.show({0, 8}, 0, 0, 99);
       }},
      {"it is read where it lies", [](Impostor& p) { p.send_data(); }},
  };
  for (auto const& bad : all) {
    Impostor peer;
    peer.start_rank_0();
    peer.open_lending();
    bad.act(peer);
    CHECK(peer.to_rank_0.is_closed());
    check_refused(peer, bad.says);
  }
}

TEST_CASE("memory is shown only to who has borrowed it, on links that lend") {
  Impostor no_gpu(false);
  no_gpu.start_rank_0();
  no_gpu.open_lending();
  CHECK(no_gpu.to_rank_0.is_closed());
  Impostor refused;
  refused.gpu(0).gpu.open_nothing("another container");
  refused.start_rank_0();
  refused.open_lending();
  CHECK(refused.borrowed().value() == links::Borrow{{links::Way::refused}, "cuda:0: another container"});
  refused.show({0, 6000});
  CHECK(refused.to_rank_0.is_closed());
  check_refused(refused, "nothing was borrowed");
}

TEST_CASE("what is lent and cannot be is refused with the reason, and the run goes on in frames") {
  std::vector<std::pair<std::string, std::function<void(links::Lend&)>>> const all{
      {"is of no memory", [](links::Lend& lend) { lend.handle = {}; }},
      {"were said to be there", [](links::Lend& lend) { lend.bytes += 4096; }},
      {"is not the arena that was meant", [](links::Lend& lend) { lend.proof_at += 256; }},
      {"proof is said to lie at byte", [](links::Lend& lend) { lend.proof_at = ~std::uint64_t{0}; }},
      {"has no peer access to GPU-9", [](links::Lend& lend) { links::set_uuid(lend, "GPU-9"); }},
  };
  for (auto const& [says, spoil] : all) {
    Impostor peer;
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

TEST_CASE("words about what was lent that cannot be close the link, and fail the run") {
  std::vector<Bad> const all{
      {"2000 were shown", [](Impostor& p) { p.read(2004); }},
      {"elements have 4 bytes", [](Impostor& p) { p.read(3); }},
      {"0 were read before", [](Impostor& p) { p.read(0); }},
      {"1000 were read before",
       [](Impostor& p) {
         p.read(1000);
         p.read(1000);
       }},
      {"the run has 2 messages", [](Impostor& p) { p.read(4, 2); }},
      {"which was never opened", [](Impostor& p) { p.read(4, 0, 99); }},
      {"borrow of what was borrowed", [](Impostor& p) { p.answer(links::Way::in_place); }},
      {"borrow frame that says what cannot be", [](Impostor& p) { p.answer(static_cast<links::Way>(9)); }},
      {"borrow for run 99", [](Impostor& p) { p.answer(links::Way::in_place, 99); }},
  };
  for (auto const& bad : all) {
    Impostor peer;
    peer.start_rank_0();
    peer.answer(links::Way::in_place);
    peer.grant(2000);
    REQUIRE(peer.shown());
    bad.act(peer);
    CHECK(peer.from_rank_0.is_closed());
    CHECK(!peer.rank_0_ended());  // it cannot know what the peer reads
    peer.pass(std::chrono::milliseconds(10'000));
    check_refused(peer, bad.says);
  }
}

TEST_CASE("a word of reading where nothing is read closes the link") {
  Impostor peer;
  peer.start_rank_0();
  peer.answer(links::Way::in_frames);
  peer.grant(2000);
  REQUIRE(peer.from_rank_0.find(FrameType::data));
  peer.read(2000);
  CHECK(peer.from_rank_0.is_closed());
  check_refused(peer, "nothing was borrowed");
}

TEST_CASE("where nothing may be lent, no word of it is taken") {
  for (auto const type : {FrameType::borrow, FrameType::read, FrameType::returned}) {
    Impostor peer(false);
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
  Impostor peer;
  peer.start_rank_0();
  REQUIRE(peer.is_lent());
  peer.answer(links::Way::refused);
  CHECK_FALSE(peer.lends_in_run(2));
  peer.pass(std::chrono::milliseconds(30'000));
  CHECK(peer.lends_in_run(3));
}
