#include "worker/engine/testing/loopback_fleet.hpp"

#include "worker/links/errc.hpp"

namespace chorus::engine::testing {

LoopbackFleet::LoopbackFleet(FleetOptions options) : network_(options.network) {
  for (plan::Rank rank = 0; rank < options.ranks; ++rank) {
    DataPlaneOptions plane;
    plane.worker = "w" + std::to_string(rank);
    plane.incarnation = 100 + rank;
    plane.eager_bytes = options.eager_bytes;
    plane.early_runs = options.early_runs;
    members_.push_back(std::make_unique<Member>(*this, rank, std::move(plane)));
  }
}

LoopbackFleet::~LoopbackFleet() {
  for (auto& member : members_) member->engine.shut_down();
}

Peer LoopbackFleet::peer(plan::Rank rank) const {
  return {rank, "w" + std::to_string(rank), 100 + rank, "loopback:" + std::to_string(rank)};
}

void LoopbackFleet::start(plan::Rank rank, RunSpec spec, RunDone done) {
  members_[rank]->engine.start(std::move(spec), std::move(done));
}

bool LoopbackFleet::step() {
  if (later_.empty()) return network_.step();
  auto const next = std::move(later_.front());
  later_.pop_front();
  next();
  return true;
}

bool LoopbackFleet::run_until(std::atomic<std::size_t> const& ended, std::size_t count) {
  while (ended < count)
    if (!step()) return false;
  return true;
}

void LoopbackFleet::let_move() {
  while (step()) {}
}

void LoopbackFleet::let_move(std::size_t steps) {
  while (steps-- != 0 && step()) {}
}

void LoopbackFleet::pass(std::chrono::milliseconds time) {
  now_ += time;
  for (auto& member : members_)
    if (!member->dead) member->engine.check_deadlines();
}

void LoopbackFleet::kill(plan::Rank rank) {
  members_[rank]->dead = true;
  for (auto const& wire : wires_)
    if (auto const link = wire.link.lock(); link && (wire.from == rank || wire.to == rank)) network_.cut(*link);
}

void LoopbackFleet::Member::dial(std::uint64_t outlet, Peer const& peer, TimePoint) {
  fleet.later_.push_back([this, outlet, peer] { fleet.connect(*this, outlet, peer); });
}

void LoopbackFleet::Member::settle_soon() {
  fleet.later_.push_back([this] { engine.settle(); });
}

void LoopbackFleet::connect(Member& from, std::uint64_t outlet, Peer const& peer) {
  auto& to = *members_[peer.rank];
  if (to.dead) return from.engine.dialed(outlet, Error(links::LinkErrc::closed, peer.url + ": connection refused"));
  auto [here, there] = network_.connect();
  wires_.push_back({from.rank, peer.rank, here});
  if (impersonated == peer.rank)
    on_dial(std::move(there));
  else
    to.engine.adopt(std::move(there), {"w" + std::to_string(from.rank), 100 + from.rank});
  from.engine.dialed(outlet, std::move(here));
}

std::shared_ptr<links::Link> LoopbackFleet::connect_stranger(plan::Rank to, Identity who) {
  auto [here, there] = network_.connect();
  members_[to]->engine.adopt(std::move(there), std::move(who));
  return here;
}

}  // namespace chorus::engine::testing
