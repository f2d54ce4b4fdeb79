// Calls of two ranks that are made again: what is sent and taken as a whole, and everything else that may happen then.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppet.hpp"
#include "worker/links/errc.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;
using links::FrameHeader;
using links::FrameType;
using links::Parcel;

namespace {

using Bytes = std::vector<std::byte>;

// Keeps what the engine sends; what the peer sends is the test's to say.
class Wire final : public links::Link {
 public:
  struct Frame {
    FrameHeader header;
    Bytes payload;
  };

  void start(links::LinkHandler& by) override { handler = &by; }
  void flush() override {
    for (links::OutFrame frame; handler != nullptr && handler->next_frame(frame);) {
      frames.push_back({frame.header, {frame.payload.begin(), frame.payload.end()}});
      handler->frame_sent(frame.header);
    }
  }
  bool send_parcel(Parcel const& parcel) override {
    if (!takes_parcels) return false;
    parcels.push_back({Frame{parcel.open, {parcel.opening.begin(), parcel.opening.end()}},
                       Frame{parcel.data, {parcel.payload.begin(), parcel.payload.end()}}});
    return true;
  }
  void release(std::uint64_t) override {}
  void close() override {
    flush();
    handler = nullptr;
  }
  [[nodiscard]] std::string_view kind() const override { return "wire"; }

  void bring(FrameHeader const& header, Bytes const& payload) {
    REQUIRE(handler->frame_arrives(header).has_value());
    if (payload.empty()) return;
    std::memcpy(handler->payload_space().data(), payload.data(), payload.size());
    REQUIRE(handler->payload_arrived(payload.size()).has_value());
  }
  // As a stream would: frame by frame if it is not taken as a whole. Whether it was.
  bool bring(Parcel const& parcel) {
    bool const was_taken = handler->parcel_arrives(parcel);
    if (!was_taken) {
      bring(parcel.open, {parcel.opening.begin(), parcel.opening.end()});
      bring(parcel.data, {parcel.payload.begin(), parcel.payload.end()});
    }
    return was_taken;
  }
  void rest() { handler->link_rests(); }
  void break_off() {
    std::exchange(handler, nullptr)->link_closed(Error(links::LinkErrc::closed, "closed by the peer"));
  }
  [[nodiscard]] std::size_t count(FrameType type) const {
    return static_cast<std::size_t>(
        std::count_if(frames.begin(), frames.end(), [type](auto const& frame) { return frame.header.type == type; }));
  }

  links::LinkHandler* handler = nullptr;
  bool takes_parcels = true;
  std::vector<Frame> frames;
  std::vector<std::array<Frame, 2>> parcels;
};

// One rank is real, on a clock that the test moves; the test plays the other one. They sum 1, 2, 3 and 10, 20, 30.
class Pair final : public Surroundings {
 public:
  struct Form {
    plan::Rank real = 0;
    bool in_place = false;
    plan::Algorithm const* algorithm = &algorithms::mesh;
  };
  Pair() : Pair(Form()) {}
  explicit Pair(Form form) : engine(options(form.real), *this, book), form_(form) {
    Case c;
    c.algorithm = form.algorithm;
    c.elements = 3;
    c.in_place = form.in_place;
    c.timeout = 8s;
    collective_.emplace(models_, c, now_);
    kind_ = std::make_shared<RunKind>(spec());
    engine.adopt(in, {"w" + std::to_string(other()), 100 + other()});
  }
  ~Pair() { engine.shut_down(); }

  [[nodiscard]] RunSpec& spec() { return collective_->spec(form_.real); }
  [[nodiscard]] plan::Rank other() const { return 1 - form_.real; }

  TimePoint now() override { return now_; }
  void dial(std::uint64_t outlet, Peer const&, TimePoint) override { dialed_ = outlet; }
  void settle_soon() override {}
  void deadline_changed() override {}
  void poll_devices_soon() override {}

  void call(std::uint64_t run) { call(run, kind_, output_); }
  void call(std::uint64_t run, std::shared_ptr<RunKind> kind, std::span<float> output) {
    results_.emplace_back();
    auto* const result = &results_.back();
    auto const input = form_.in_place ? output : std::span<float>(input_);
    if (form_.in_place) std::copy(input_.begin(), input_.end(), output.begin());
    engine.start(std::move(kind), {run, std::as_bytes(input), std::as_writable_bytes(output), now_ + 8s},
                 [result](RunResult ended) { *result = std::move(ended); });
    if (auto const outlet = std::exchange(dialed_, 0); outlet != 0)
      engine.dialed(outlet, std::shared_ptr<links::Link>(out));
  }
  // The first of its kind, which is like any other run.
  void call_first() {
    call(1);
    CHECK_FALSE(bring(1));
    CHECK(out->parcels.empty());
    CHECK(sum_is_right());
    out->frames.clear();
  }

  // What the other rank sends in this run.
  [[nodiscard]] Parcel parcel(std::uint64_t run) {
    auto const& peers = collective_->spec(other());
    links::Open const peers_open{peers.token, peers.fingerprint, digest_of(peers), 100 + form_.real,
                                 160 * 1024,  other(),           form_.real};
    Parcel parcel;
    parcel.open.type = FrameType::open;
    parcel.open.run = parcel.data.run = run;
    parcel.open.epoch = parcel.data.epoch = 1;
    parcel.open.length = links::encode(peers_open, spec().description, opening);
    parcel.opening = std::span(opening).first(parcel.open.length);
    parcel.payload = std::as_bytes(std::span(theirs_));
    parcel.data.length = static_cast<std::uint32_t>(parcel.payload.size());
    return parcel;
  }
  bool bring(std::uint64_t run) {
    bool const was_taken = in->bring(parcel(run));
    in->rest();
    return was_taken;
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    engine.check_deadlines();
  }

  // Of the last call.
  [[nodiscard]] bool has_ended() const { return results_.back().has_value(); }
  [[nodiscard]] RunResult const& result() const { return *results_.back(); }
  [[nodiscard]] bool sum_is_right() {
    bool const is_right = has_ended() && result().status.has_value() && output_ == std::array{11.F, 22.F, 33.F};
    output_ = {};
    return is_right;
  }
  [[nodiscard]] std::string failure() const {
    return has_ended() && result().status.has_error() ? result().status.error().detail : "it has not failed";
  }

  std::shared_ptr<Wire> const in = std::make_shared<Wire>(), out = std::make_shared<Wire>();
  links::OpenBytes opening;
  TrafficBook book;
  Engine engine;

 private:
  static DataPlaneOptions options(plan::Rank rank) {
    DataPlaneOptions options;
    options.worker = "w" + std::to_string(rank);
    options.incarnation = 100 + rank;
    return options;
  }

  Form const form_;
  TimePoint now_{1h};
  LoopbackFleet models_{{}};
  std::optional<Collective> collective_;
  std::shared_ptr<RunKind> kind_;
  std::uint64_t dialed_ = 0;
  std::array<float, 3> input_{1, 2, 3}, theirs_{10, 20, 30};
  std::array<float, 3> output_{};
  std::deque<std::optional<RunResult>> results_;
};

}  // namespace

namespace {

void make_again(Pair::Form form) {
  Pair pair(form);
  pair.call_first();
  auto const& first = pair.result();
  for (std::uint64_t run = 2; run <= 5; ++run) {
    pair.call(run);
    REQUIRE(pair.out->parcels.size() == run - 1);
    auto const& [open, data] = pair.out->parcels.back();
    CHECK((open.header.type == FrameType::open && open.header.run == run && open.header.epoch == 1));
    CHECK((data.header.type == FrameType::data && data.header.run == run && data.payload.size() == 12));
    CHECK(links::check(open.header).has_value());
    CHECK(links::check(data.header).has_value());
    CHECK_FALSE(pair.has_ended());
    pair.pass(2ms);
    CHECK(pair.bring(run));
    CHECK(pair.sum_is_right());
    CHECK(pair.out->frames.empty());
    auto const& again = pair.result();
    CHECK(again.seconds() == 0.002);
    CHECK(again.wait_seconds == 0.002);
    CHECK(again.bytes_sent == first.bytes_sent);
    CHECK(again.bytes_received == first.bytes_received);
    CHECK(again.steps == first.steps);
    REQUIRE(again.trace->instructions.size() == first.trace->instructions.size());
    for (std::size_t i = 0; i < again.trace->instructions.size(); ++i) {
      auto const &step = again.trace->instructions[i], &step_of_first = first.trace->instructions[i];
      CHECK((step.op == step_of_first.op && step.peer == step_of_first.peer && step.bytes == 12));
      CHECK(step.done_ns == (step.op == plan::Opcode::send ? 0 : 2000000));
      // After one that takes until then, or at once.
      CHECK((step.ready_ns == 0 || (i != 0 && step.ready_ns == again.trace->instructions[i - 1].done_ns)));
    }
  }
  auto const traffic = pair.book.read();
  REQUIRE(traffic.size() == 1);
  CHECK(traffic[0].sent_bytes == 5 * 12);
  CHECK(traffic[0].received_bytes == 5 * 12);
}

}  // namespace

TEST_CASE("a call that is made again is sent as a whole, taken as a whole, and tells the same of itself") {
  for (plan::Rank const real : {0U, 1U})
    for (bool const in_place : {false, true}) make_again({real, in_place});
}

TEST_CASE("what it sends in both cases is the same") {
  Pair pair;
  pair.call(1);
  auto const one_by_one = pair.out->frames;
  pair.bring(1);
  pair.call(2);
  REQUIRE(one_by_one.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto as_first = pair.out->parcels[0][i];
    as_first.header.run = 1;
    CHECK(as_first.header == one_by_one[i].header);
    CHECK(as_first.payload == one_by_one[i].payload);
  }
  pair.bring(2);
}

TEST_CASE("nothing is taken as a whole that is not what the peer is to say, to the last bit") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  auto const right = pair.parcel(2);
  for (std::size_t bit = 0; bit < 8 * (2 * sizeof(FrameHeader) + right.opening.size()); ++bit) {
    auto parcel = right;
    Bytes opening(right.opening.begin(), right.opening.end());
    parcel.opening = opening;
    auto const byte = bit / 8;
    auto* const changed = byte < sizeof(FrameHeader) ? reinterpret_cast<std::byte*>(&parcel.open) + byte
                          : byte < 2 * sizeof(FrameHeader)
                              ? reinterpret_cast<std::byte*>(&parcel.data) + byte - sizeof(FrameHeader)
                              : opening.data() + byte - 2 * sizeof(FrameHeader);
    *changed ^= std::byte{1} << bit % 8;
    REQUIRE_FALSE(pair.in->handler->parcel_arrives(parcel));
  }
  CHECK(pair.bring(2));
  CHECK(pair.sum_is_right());
}

TEST_CASE("nor is what another worker says, or what is said again") {
  Pair pair;
  auto const stranger = std::make_shared<Wire>();
  pair.engine.adopt(stranger, {"w1", 102});
  pair.call_first();
  pair.call(2);
  auto const parcel = pair.parcel(2);
  CHECK_FALSE(stranger->handler->parcel_arrives(parcel));
  CHECK(pair.in->handler->parcel_arrives(parcel));
  CHECK_FALSE(pair.in->handler->parcel_arrives(parcel));
  pair.in->rest();
  CHECK_FALSE(pair.in->handler->parcel_arrives(parcel));
  CHECK(pair.sum_is_right());
}

TEST_CASE(
    "where the peer's frames come one by one, where it was faster, and where the link is slow, it is as any other") {
  for (int const how : {0, 1, 2}) {
    Pair pair;
    pair.call_first();
    for (std::uint64_t run = 2; run <= 4; ++run) {
      auto const parcel = pair.parcel(run);
      if (how == 1) CHECK_FALSE(pair.bring(run));
      pair.out->takes_parcels = how != 2;
      pair.call(run);
      if (how == 0) {
        pair.in->bring(parcel.open, {parcel.opening.begin(), parcel.opening.end()});
        pair.in->rest();
        CHECK_FALSE(pair.has_ended());
        pair.in->bring(parcel.data, {parcel.payload.begin(), parcel.payload.end()});
        pair.in->rest();
      }
      if (how == 2) CHECK_FALSE(pair.bring(run));
      CHECK(pair.sum_is_right());
      CHECK(pair.out->parcels.size() == (how == 0 ? run - 1 : 0));
      CHECK(pair.out->count(FrameType::open) == (how == 0 ? 0 : run - 1));
      CHECK(pair.out->count(FrameType::data) == (how == 0 ? 0 : run - 1));
    }
  }
}

TEST_CASE("a second call at the same time is as any other, and ends whichever comes first") {
  for (bool const second_first : {false, true}) {
    Pair pair;
    pair.call_first();
    auto const other = std::make_shared<RunKind>(pair.spec());
    std::array<float, 3> sums{};
    pair.call(2, other, sums);
    pair.bring(2);
    sums = {};
    pair.call(3);
    pair.call(4, other, sums);
    for (auto const run : second_first ? std::array{4, 3} : std::array{3, 4})
      CHECK(pair.bring(static_cast<std::uint64_t>(run)) == (run == 3));
    CHECK(pair.has_ended());
    CHECK(sums == std::array{11.F, 22.F, 33.F});
    CHECK(pair.out->parcels.size() == 1);
    CHECK_FALSE(pair.engine.is_busy());
  }
}

TEST_CASE("where it stands can be asked at once") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  auto const progress = pair.engine.progress(2);
  REQUIRE(progress.size() == 1);
  CHECK(progress[0].steps_done == 1);
  CHECK(progress[0].bytes_sent == 12);
  CHECK_FALSE(pair.bring(2));
  CHECK(pair.sum_is_right());
}

TEST_CASE("a peer that does not answer is asked, and named when the time is up, as in any other run") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  pair.pass(300ms);
  CHECK(pair.out->count(FrameType::ask) + pair.in->count(FrameType::ask) == 1);
  CHECK(pair.out->count(FrameType::open) == 0);  // it was sent
  auto const progress = pair.engine.progress(std::nullopt);
  REQUIRE(progress.size() == 1);
  CHECK(progress[0].run == 2);
  CHECK(progress[0].steps_done == 1);
  REQUIRE(progress[0].waiting_for.size() == 1);
  CHECK(progress[0].waiting_for[0].rank == 1);
  SUBCASE("its message comes after all") {
    CHECK_FALSE(pair.bring(2));
    CHECK(pair.sum_is_right());
    auto const& steps = pair.result().trace->instructions;
    CHECK(steps[0].op == plan::Opcode::send);
    CHECK(steps[0].done_ns == 0);
    CHECK(pair.result().wait_seconds == 300000000 * 1e-9);
  }
  SUBCASE("it stays silent") {
    for (auto passed = 0ms; passed < 6s; passed += 200ms) pair.pass(200ms);
    CHECK(mentions(pair.failure(), {"rank 1 (w1)"}));
  }
  CHECK_FALSE(pair.engine.is_busy());
}

TEST_CASE("whatever ends any other run ends this one, with the same words") {
  auto const words_of = [](bool made_again, std::function<void(Pair&, std::uint64_t)> const& happen) {
    Pair pair;
    if (made_again) pair.call_first();
    std::uint64_t const run = made_again ? 2 : 1;
    pair.call(run);
    CHECK(pair.out->parcels.size() == (made_again ? 1 : 0));
    happen(pair, run);
    // What a lost link might still bring is waited for.
    for (auto const time : {8000ms, 1000ms}) pair.pass(time);
    auto words = pair.failure();
    CHECK(words != "it has not failed");
    CHECK_FALSE(pair.engine.is_busy());
    for (auto at = words.find("run "); at != std::string::npos; at = words.find("run ", at + 1)) words[at + 4] = '#';
    return words;
  };
  auto const abort_by_peer = [](Pair& pair, std::uint64_t run) {
    links::VerdictBytes bytes;
    FrameHeader header;
    header.type = FrameType::abort;
    header.run = run;
    header.epoch = 1;
    header.length = links::encode({pair.spec().token, links::VerdictCode::aborted, {1}, "enough"}, bytes);
    pair.out->bring(header, {bytes.begin(), bytes.begin() + header.length});
    pair.out->rest();
  };
  auto const grant_by_peer = [](Pair& pair, std::uint64_t run) {
    FrameHeader header;
    header.type = FrameType::grant;
    header.run = run;
    header.epoch = 1;
    header.offset = 12;
    auto const why = pair.out->handler->frame_arrives(header);
    REQUIRE(why.has_error());
    CHECK(mentions(why.error().detail, {"12 were granted before"}));
    std::exchange(pair.out->handler, nullptr)->link_closed(why.error());
    pair.in->break_off();
  };
  auto const open_otherwise = [](Pair& pair, std::uint64_t run) {
    auto parcel = pair.parcel(run);
    pair.opening[8] ^= std::byte{1};
    CHECK_FALSE(pair.in->handler->parcel_arrives(parcel));
    pair.in->bring(parcel.open, {parcel.opening.begin(), parcel.opening.end()});
    pair.in->rest();
  };
  std::vector<std::function<void(Pair&, std::uint64_t)>> const ends{
      [](Pair& pair, std::uint64_t run) { pair.engine.abort(run, Error(EngineErrc::aborted, "not wanted")); },
      [](Pair& pair, std::uint64_t) { pair.engine.fence("w1", 102); },
      [](Pair& pair, std::uint64_t) { pair.in->handler->frame_is_corrupt(Error(links::LinkErrc::corrupt_frame, "x")); },
      [](Pair& pair, std::uint64_t) {
        pair.out->handler->frame_is_corrupt(Error(links::LinkErrc::corrupt_frame, "y"));
      },
      [](Pair& pair, std::uint64_t) { pair.engine.stop(); },
      [](Pair& pair, std::uint64_t) {
        pair.out->break_off();
        pair.in->break_off();
      },
      abort_by_peer,
      grant_by_peer,
      open_otherwise,
  };
  for (auto const& end : ends) CHECK(words_of(true, end) == words_of(false, end));
}

TEST_CASE("a program that sends what it has received is no exchange") {
  Pair pair({.algorithm = &algorithms::tree});
  pair.call(1);
  pair.in->bring(pair.parcel(1));
  pair.in->rest();
  pair.call(2);
  CHECK(pair.out->parcels.empty());
  pair.engine.abort(2, Error(EngineErrc::aborted, "enough"));
}
