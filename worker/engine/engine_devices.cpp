// The engine's part with GPUs: what runs need there at their beginning, and what is left of them at their end.
#include <algorithm>
#include <thread>
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
    moved = poll_unrested() || moved;
  }
  if (moved || !dirty_connections_.empty())
    settle();
  else if (awaits_devices())
    surroundings_.poll_devices_soon();
  return moved;
}

bool Engine::rests(Run& run, TimePoint now) {
  if (!run.device_rests()) return false;
  give_back_borrowed(run);
  return run.has_back_what_it_lent(now);
}

// On the link on which it was borrowed: if that has ended, the peer does not wait for a word.
void Engine::give_back_borrowed(Run& run) {
  if (!run.has_device() || std::exchange(run.has_given_back, true)) return;
  auto const& spec = run.spec();
  for (auto const& channel : run.receives()) {
    if (!channel->reads_in_place()) continue;
    for (auto& inlet : inlets_)
      if (!inlet->is_closed() && inlet->number() == channel->inlet_number) inlet->send_returned(spec.run, spec.epoch);
  }
}

bool Engine::has_lent() {
  return std::any_of(unrested_.begin(), unrested_.end(),
                     [this](Unrested const& each) { return !each.run->has_back_what_it_lent(surroundings_.now()); });
}

// Some timer of the run is due every few seconds: if this process comes so late, it did not run.
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

Borrowed Engine::borrow(Run const& run, Identity const& peer, links::Lend const& lend, links::Borrow& told) {
  told.head.way = links::Way::in_frames;
  auto* const gpu = run.spec().gpu;
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
  for (auto& inlet : inlets_) inlet->decide(run);
}

// A device that has not come to rest for so long is lost; the run ends, and what it may still write to is kept.
bool Engine::poll_unrested() {
  auto const now = surroundings_.now();
  std::erase_if(stuck_, [this, now](auto const& run) { return rests(*run, now); });
  borrowed_arenas_.bury();
  look_at_stuck_ = now + stuck_pause;
  auto const is_over = [this, now](Unrested const& each) { return rests(*each.run, now) || now >= each.give_up; };
  bool moved = false;
  for (auto over = std::find_if(unrested_.begin(), unrested_.end(), is_over); over != unrested_.end();
       over = std::find_if(unrested_.begin(), unrested_.end(), is_over)) {
    auto [run, failure, give_up] = std::move(*over);
    unrested_.erase(over);
    bool const has_rest = rests(*run, now);
    auto& kept_in = has_rest ? dead_runs_ : stuck_;
    kept_in.emplace_back(std::move(run))->end(failure, now, has_rest ? Run::Memory::goes : Run::Memory::stays);
    moved = true;
  }
  return moved;
}

// By real time: the loop ends after this, and time as the surroundings have it may stand still. What peers still read
// is not waited for here: whoever stops has done that before (has_lent), and the end of the links tells them.
void Engine::wait_until_devices_rest() {
  auto const until = std::chrono::steady_clock::now() + device_patience;
  auto const works = [](Unrested const& each) { return !each.run->device_rests(); };
  while (std::any_of(unrested_.begin(), unrested_.end(), works) && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  static_cast<void>(poll_unrested());
  for (auto& each : unrested_)
    stuck_.emplace_back(std::move(each.run))->end(each.failure, surroundings_.now(), Run::Memory::stays);
  unrested_.clear();
}

}  // namespace chorus::engine
