// The engine's part with GPUs: what runs need there at their beginning, and what is left of them at their end.
#include <algorithm>
#include <thread>
#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

std::optional<std::unique_ptr<DeviceWork>> Engine::begin_device(RunSpec const& spec, RunDone const& done) {
  if (spec.gpu == nullptr) return nullptr;
  auto begun = DeviceWork::begin(spec, options_.eager_bytes, surroundings_);
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
    for (auto* const run : device_runs_)
      if (run->poll_device()) {
        moved = true;
        dirty_runs_.push(*run);
      }
    moved = poll_unrested() || moved;
  }
  if (moved)
    settle();
  else if (awaits_devices())
    surroundings_.poll_devices_soon();
  return moved;
}

// A device that has not come to rest for so long is lost; the run ends, and what it may still write to is kept.
bool Engine::poll_unrested() {
  std::erase_if(stuck_, [](auto const& run) { return run->device_rests(); });
  auto const now = surroundings_.now();
  auto const is_over = [now](Unrested const& each) { return each.run->device_rests() || now >= each.give_up; };
  bool moved = false;
  for (auto over = std::find_if(unrested_.begin(), unrested_.end(), is_over); over != unrested_.end();
       over = std::find_if(unrested_.begin(), unrested_.end(), is_over)) {
    auto [run, failure, give_up] = std::move(*over);
    unrested_.erase(over);
    auto& kept_in = run->device_rests() ? dead_runs_ : stuck_;
    kept_in.emplace_back(std::move(run))->end(failure, now);
    moved = true;
  }
  return moved;
}

// By real time: the loop ends after this, and time as the surroundings have it may stand still.
void Engine::wait_until_devices_rest() {
  auto const until = std::chrono::steady_clock::now() + device_patience;
  while (!unrested_.empty() && std::chrono::steady_clock::now() < until)
    if (!poll_unrested()) std::this_thread::yield();
  for (auto& each : unrested_) stuck_.emplace_back(std::move(each.run))->end(each.failure, surroundings_.now());
  unrested_.clear();
}

}  // namespace chorus::engine
