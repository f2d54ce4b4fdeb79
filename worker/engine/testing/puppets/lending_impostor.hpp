// A peer, played by the test, that lends and borrows memory of a GPU.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"

namespace chorus::engine::testing {

// Rank 0 is a real engine on a GPU; the test plays rank 1, on another GPU. Messages have 6000 bytes in each direction.
class LendingImpostor {
 public:
  static constexpr std::uint64_t arena_bytes = 1 << 20;
  static constexpr std::uint64_t eager_bytes = 1024;

  explicit LendingImpostor(bool lends = true) : gpus_(doubles()), fleet_(options(gpus_, lends)) {
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
    links::FrameHeader header;
    header.type = links::FrameType::open;
    header.flags = links::lends_flag;
    header.run = 1;
    header.epoch = 1;
    auto const used = links::encode(open_of(collective_->spec(1), eager_bytes), "", bytes);
    header.length = links::append(lend, used, bytes);
    to_rank_0.send(header, {bytes.begin(), bytes.begin() + header.length});
    fleet_.let_move();
  }
  void show(links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0, std::uint64_t run = 1) {
    auto header = header_of(links::FrameType::lies, run);
    header.message = message;
    header.offset = offset;
    send(to_rank_0, header, place);
  }
  void answer(links::Way way, std::uint64_t run = 1) {
    auto header = header_of(links::FrameType::borrow, run);
    send(from_rank_0, header, links::BorrowHead{way});
  }
  void grant(std::uint64_t up_to) {
    auto header = header_of(links::FrameType::grant, 1);
    header.offset = up_to;
    from_rank_0.send(header);
    fleet_.let_move();
  }
  void read(std::uint64_t up_to, std::uint32_t message = 0, std::uint64_t run = 1) {
    auto header = header_of(links::FrameType::read, run);
    header.message = message;
    header.offset = up_to;
    from_rank_0.send(header);
    fleet_.let_move();
  }
  void has_room(links::Place place, std::uint32_t message = 0, std::uint64_t offset = 0) {
    auto header = header_of(links::FrameType::room, 1);
    header.message = message;
    header.offset = offset;
    send(from_rank_0, header, place);
  }
  void wrote(std::uint64_t up_to) {
    auto header = header_of(links::FrameType::wrote, 1);
    header.offset = up_to;
    to_rank_0.send(header);
    fleet_.let_move();
  }
  // Returns how many bytes of message 0 rank 0 reports as written.
  [[nodiscard]] std::uint64_t told_written() const {
    std::uint64_t up_to = 0;
    for (auto const& frame : from_rank_0.received())
      if (frame.header.type == links::FrameType::wrote && frame.header.message == 0) up_to = frame.header.offset;
    return up_to;
  }
  void say(links::FrameType type) {
    from_rank_0.send(header_of(type, 1));
    fleet_.let_move();
  }
  // Starts another run on rank 0; true if the peer's open of that run lends memory.
  [[nodiscard]] bool lends_in_run(std::uint64_t run) {
    auto c = ring();
    c.run = run;
    later_.push_back(std::make_unique<Collective>(fleet_, c, fleet_.now()));
    later_.back()->start(0);
    fleet_.let_move();
    auto const& received = from_rank_0.received();
    auto const open = std::find_if(received.begin(), received.end(), [run](auto const& frame) {
      return frame.header.type == links::FrameType::open && frame.header.run == run;
    });
    REQUIRE(open != received.end());
    return open->header.flags == links::lends_flag;
  }
  void send_data() {
    to_rank_0.send_data(1, 1, 0, 0, 6000);
    fleet_.let_move();
  }
  [[nodiscard]] std::optional<links::Borrow> borrowed() const {
    auto const frame = to_rank_0.find(links::FrameType::borrow);
    return frame ? std::optional(links::decode_borrow(frame->payload).value()) : std::nullopt;
  }
  [[nodiscard]] std::optional<links::Place> shown() const {
    auto const frame = from_rank_0.find(links::FrameType::lies);
    return frame ? std::optional(links::decode_place(frame->payload).value()) : std::nullopt;
  }
  [[nodiscard]] bool is_lent() const {
    auto const open = from_rank_0.find(links::FrameType::open);
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
    c.in_place = true;  // the second message then waits until the first is read
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
  static links::FrameHeader header_of(links::FrameType type, std::uint64_t run) {
    links::FrameHeader header;
    header.type = type;
    header.run = run;
    header.epoch = 1;
    return header;
  }
  template <class Payload>
  void send(Puppet& puppet, links::FrameHeader header, Payload const& payload) {
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

}  // namespace chorus::engine::testing
