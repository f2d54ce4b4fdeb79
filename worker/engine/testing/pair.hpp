// Two ranks of which one is real, on a clock and a wire that are the test's: it plays the other one, frame by frame.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/testing/case.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppet.hpp"
#include "worker/links/errc.hpp"

namespace chorus::engine::testing {

using Bytes = std::vector<std::byte>;

// Keeps what the engine sends; what the peer sends is the test's to say.
class Wire final : public links::Link {
 public:
  struct Frame {
    links::FrameHeader header;
    Bytes payload;
  };

  void start(links::LinkHandler& by) override { handler = &by; }
  void flush() override {
    for (links::OutFrame frame; handler != nullptr && handler->next_frame(frame);) {
      frames.push_back({frame.header, {frame.payload.begin(), frame.payload.end()}});
      handler->frame_sent(frame.header);
    }
  }
  links::Taken send_parcel(links::Parcel const& parcel) override {
    if (takes == links::Taken::nothing) return takes;
    if (on_parcel) on_parcel();
    parcels.push_back({Frame{parcel.open, {parcel.opening.begin(), parcel.opening.end()}},
                       Frame{parcel.data, {parcel.payload.begin(), parcel.payload.end()}}});
    return takes;
  }
  void release(std::uint64_t run) override { released.push_back(run); }
  void close() override {
    flush();
    handler = nullptr;
  }
  [[nodiscard]] std::string_view kind() const override { return "wire"; }

  void bring(links::FrameHeader const& header, Bytes const& payload) {
    REQUIRE(handler->frame_arrives(header).has_value());
    if (payload.empty()) return;
    std::memcpy(handler->payload_space().data(), payload.data(), payload.size());
    REQUIRE(handler->payload_arrived(payload.size()).has_value());
  }
  // As a stream would: frame by frame if it is not taken as a whole. Whether it was.
  bool bring(links::Parcel const& parcel) {
    bool const was_taken = takes_in(parcel);
    if (!was_taken) {
      bring(parcel.open, {parcel.opening.begin(), parcel.opening.end()});
      bring(parcel.data, {parcel.payload.begin(), parcel.payload.end()});
    }
    return was_taken;
  }
  bool takes_in(links::Parcel const& parcel) {
    return handler->awaits_parcel(parcel.open) && handler->parcel_arrives(parcel);
  }
  void rest() { handler->link_rests(); }
  void break_off() {
    std::exchange(handler, nullptr)->link_closed(Error(links::LinkErrc::closed, "closed by the peer"));
  }
  [[nodiscard]] std::size_t count(links::FrameType type) const {
    return static_cast<std::size_t>(
        std::count_if(frames.begin(), frames.end(), [type](auto const& frame) { return frame.header.type == type; }));
  }

  links::LinkHandler* handler = nullptr;
  links::Taken takes = links::Taken::whole;
  std::function<void()> on_parcel;
  std::vector<std::uint64_t> released;  // runs
  std::vector<Frame> frames;
  std::vector<std::array<Frame, 2>> parcels;
};

// One rank is real, on a clock that the test moves; the test plays the other one. They sum 1, 2, 3... and 10, 20, 30...
class Pair final : public Surroundings {
 public:
  struct Form {
    plan::Rank real = 0;
    bool in_place = false;
    plan::Algorithm const* algorithm = &algorithms::mesh;
    std::uint64_t elements = 3;
    std::uint64_t segment_bytes = 262144;
  };
  Pair() : Pair(Form()) {}
  explicit Pair(Form form) : engine(options(form.real), *this, book), form_(form) {
    Case c;
    c.algorithm = form.algorithm;
    c.elements = form.elements;
    c.segment_bytes = form.segment_bytes;
    c.in_place = form.in_place;
    c.timeout = std::chrono::seconds(8);
    collective_.emplace(models_, c, now_);
    kind_ = std::make_shared<RunKind>(spec());
    for (std::uint64_t i = 1; i <= form.elements; ++i) {
      input_.push_back(static_cast<float>(i));
      theirs_.push_back(static_cast<float>(10 * i));
      sums_.push_back(static_cast<float>(11 * i));
    }
    output_.resize(form.elements);
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
    engine.start(std::move(kind),
                 {run, std::as_bytes(input), std::as_writable_bytes(output), now_ + std::chrono::seconds(8)},
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
  [[nodiscard]] links::Parcel parcel(std::uint64_t run) {
    auto const& peers = collective_->spec(other());
    links::Open const peers_open{peers.token, peers.fingerprint, digest_of(peers), 100 + form_.real,
                                 160 * 1024,  other(),           form_.real};
    links::Parcel parcel;
    parcel.open.type = links::FrameType::open;
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
    pass_unnoticed(time);
    engine.check_deadlines();
  }
  void pass_unnoticed(std::chrono::nanoseconds time) { now_ += time; }

  // Of the last call.
  [[nodiscard]] bool has_ended() const { return results_.back().has_value(); }
  [[nodiscard]] RunResult const& result() const { return *results_.back(); }
  [[nodiscard]] bool sum_is_right() {
    bool const is_right = has_ended() && result().status.has_value() && output_ == sums_;
    std::fill(output_.begin(), output_.end(), 0.F);
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
  TimePoint now_{std::chrono::hours(1)};
  LoopbackFleet models_{{}};
  std::optional<Collective> collective_;
  std::shared_ptr<RunKind> kind_;
  std::uint64_t dialed_ = 0;
  std::vector<float> input_, theirs_, sums_, output_;
  std::deque<std::optional<RunResult>> results_;
};

}  // namespace chorus::engine::testing
