// A peer that sends the frames which the test wants.
#pragma once

#include <optional>
#include <string>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"

namespace chorus::engine::testing {

// Rank 0 is a real engine; the test plays rank 1. Messages have 6000 bytes in each direction; none is eager.
class Impostor {
 public:
  explicit Impostor(std::uint64_t eager_bytes = 1024, std::uint64_t elements = 3000) : fleet_(options(eager_bytes)) {
    Case c;
    c.algorithm = &algorithms::ring;
    c.in_place = true;  // the second message then waits until the first is sent
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

  Puppet to_rank_0;    // the link that the test dialed: carries data to rank 0 and grants back
  Puppet from_rank_0;  // the link that rank 0 dialed

 private:
  static FleetOptions options(std::uint64_t eager_bytes) {
    FleetOptions options;
    options.ranks = 2;
    options.network = {1, 5000, 2000};
    options.eager_bytes = eager_bytes;
    return options;
  }

  LoopbackFleet fleet_;
  std::optional<Collective> collective_;
  links::Open open_;
};

inline links::FrameHeader epoch_1_header(links::FrameType type, std::uint64_t run = 1) {
  links::FrameHeader header;
  header.type = type;
  header.run = run;
  header.epoch = 1;
  return header;
}

}  // namespace chorus::engine::testing
