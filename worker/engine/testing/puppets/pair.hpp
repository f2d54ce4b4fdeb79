// Two ranks, of which one is a real engine. The test plays the other rank frame by frame, and moves the clock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/plan/algorithm.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/testing/cases/case.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine::testing {

using Bytes = std::vector<std::byte>;

// A link that keeps the frames of the engine and brings frames of the test.
class Wire final : public links::Link {
 public:
  struct Frame {
    links::FrameHeader header;
    Bytes payload;
  };

  void start(links::LinkHandler& by) override { handler = &by; }
  void flush() override;
  links::Taken send_coalesced_frame(links::CoalescedFrame const& coalesced_frame) override;
  void release(std::uint64_t run) override { released.push_back(run); }
  void close() override;
  [[nodiscard]] std::string_view kind() const override { return "wire"; }

  void bring(links::FrameHeader const& header, Bytes const& payload);
  // Delivers the frame like a stream: as two frames if the engine does not take the coalesced frame. True if it does.
  bool bring(links::CoalescedFrame const& coalesced_frame);
  bool takes_in(links::CoalescedFrame const& coalesced_frame);
  void rest() { handler->link_rests(); }
  void break_off();
  [[nodiscard]] std::size_t count(links::FrameType type) const;

  links::LinkHandler* handler = nullptr;
  links::Taken takes = links::Taken::whole;
  std::function<void()> on_coalesced_frame;
  std::vector<std::uint64_t> released;  // runs
  std::vector<Frame> frames;
  std::vector<std::array<Frame, 2>> coalesced_frames;
};

// A real engine of one rank, with the test as its peer. The inputs are 1, 2, 3... and 10, 20, 30...
class Pair final : public Surroundings {
 public:
  struct Form {
    plan::Rank real = 0;
    bool in_place = false;
    plan::Algorithm const* algorithm = nullptr;  // null: mesh
    std::uint64_t elements = 3;
    std::uint64_t segment_bytes = 262144;
  };
  Pair() : Pair(Form()) {}
  explicit Pair(Form form);
  ~Pair() { engine.shut_down(); }

  [[nodiscard]] RunSpec& spec() { return collective_->spec(form_.real); }
  [[nodiscard]] plan::Rank other() const { return 1 - form_.real; }

  TimePoint now() override { return now_; }
  void dial(std::uint64_t send_connection, Peer const&, TimePoint) override { dialed_ = send_connection; }
  void settle_soon() override {}
  void watch_soon() override {}
  void deadline_changed() override {}
  void poll_devices_soon() override {}

  void call(std::uint64_t run) { call(run, kind_, output_); }
  void call(std::uint64_t run, std::shared_ptr<RunKind> kind, std::span<float> output);
  // Makes the first call of this kind, which runs without coalesced frames.
  void call_first();

  // Returns the coalesced frame that the other rank sends in this run.
  [[nodiscard]] links::CoalescedFrame coalesced_frame(std::uint64_t run);
  bool bring(std::uint64_t run);
  void pass(std::chrono::milliseconds time);
  void pass_unnoticed(std::chrono::nanoseconds time) { now_ += time; }

  // Results of the last call.
  [[nodiscard]] bool has_ended() const { return results_.back().has_value(); }
  [[nodiscard]] RunResult const& result() const { return *results_.back(); }
  [[nodiscard]] bool sum_is_right();
  [[nodiscard]] std::string failure() const;

  std::shared_ptr<Wire> const in = std::make_shared<Wire>(), out = std::make_shared<Wire>();
  links::OpenBytes opening;
  TrafficBook book;
  Engine engine;

 private:
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
