// Runs of an engine that use a GPU, and the memory that they borrow.
#include <algorithm>
#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

std::optional<std::unique_ptr<DeviceWork>> Engine::begin_device(RunSpec const& spec, RunDone const& done) {
  if (spec.gpu == nullptr) return nullptr;
  auto begun = DeviceWork::begin(spec, options_.eager_bytes, options_.lending_host.has_value(), surroundings_);
  if (begun.has_value()) return std::move(*begun);
  auto const self = spec.program->rank;
  auto const text = "rank " + std::to_string(self) + " (" + options_.worker + "): " + begun.error().detail;
  reject(done, {EngineErrc::aborted, text, {self}, {}});
  give_up(spec, self, Error(EngineErrc::aborted, text));
  return std::nullopt;
}

bool Engine::awaits_devices() const {
  return !unrested_.empty() || std::any_of(device_runs_.begin(), device_runs_.end(),
                                           [](auto const* run) { return run->is_device_at_work(); });
}

bool Engine::poll_devices() {
  bool moved = false;
  {
    Hold const hold(*this);
    look_for_standstill();
    for (auto* const run : device_runs_)
      if (run->poll_device()) {
        moved = true;
        dirty_runs_.push(*run);
      }
    if (moved) look_for_standstill();  // this process may have been stopped between the two looks
    moved = unrested_.poll(dead_runs_) || moved;
  }
  if (moved || !dirty_connections_.empty())
    settle();
  else if (awaits_devices())
    surroundings_.poll_devices_soon();
  return moved;
}

// Every run has a timer that is due every few seconds: if it is overdue for that long, this process was stopped.
void Engine::look_for_standstill() {
  Hold const hold(*this);
  auto const now = surroundings_.now();
  std::vector<std::uint64_t> late;
  for (auto const* const run : device_runs_)
    if (run->reads_in_place() && now - run->next_deadline() >= standstill) late.push_back(run->spec().run);
  for (auto const id : late) {
    auto const& run = *find_run(id);
    auto const self = run.spec().program->rank;
    auto const still = std::chrono::duration_cast<std::chrono::milliseconds>(now - run.next_deadline());
    fail_run(id, {EngineErrc::aborted,
                  run.name_of(self) + " stood still for " + std::to_string(still.count()) +
                      " ms while it read memory of its peers, which they may have given to others since",
                  {self},
                  {}});
  }
}

Borrowed Engine::borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend, links::Borrow& told) {
  told.head.way = links::Way::in_frames;
  auto* const gpu = spec.gpu;
  if (gpu == nullptr) {
    told.why_not = "its part of the run lies in the host's memory";
    return nullptr;
  }
  auto found = borrowed_arenas_.find(*gpu, peer, lend, surroundings_.now());
  if (found.arena != nullptr)
    told.head.way = links::Way::in_place;
  else if (found.is_final)
    told.head.way = links::Way::refused;
  told.why_not = found.why_not;
  traffic_.set_why_not_ipc(peer.worker, Direction::from_peer, std::move(found.why_not));
  return std::move(found.arena);
}

void Engine::decide(std::uint64_t run) {
  for (auto& receive_connection : connections_.receives()) receive_connection->decide(run);
}

}  // namespace chorus::engine
