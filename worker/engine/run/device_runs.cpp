#include "worker/engine/run/device_runs.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

std::optional<std::unique_ptr<DeviceWork>> DeviceRuns::begin(RunSpec const& spec, RunDone const& done) {
  if (spec.gpu == nullptr) return nullptr;
  auto begun = DeviceWork::begin(spec, owner_.options().eager_bytes, owner_.options().lending_host.has_value(),
                                 owner_.surroundings());
  if (begun.has_value()) return std::move(*begun);
  ends_.refuse(spec, done, Error(EngineErrc::aborted, begun.error().detail));
  return std::nullopt;
}

bool DeviceRuns::are_at_work() const {
  return !unrested_.empty() || std::any_of(runs_.on_devices().begin(), runs_.on_devices().end(),
                                           [](auto const* run) { return run->is_device_at_work(); });
}

bool DeviceRuns::poll() {
  bool moved = false;
  look_for_standstill();
  for (auto* const run : runs_.on_devices())
    if (run->poll_device()) {
      moved = true;
      runs_.dirty().push(*run);
    }
  if (moved) look_for_standstill();  // this process may have been stopped between the two looks
  return unrested_.poll(runs_.dead()) || moved;
}

// Every run has a timer that is due every few seconds: if it is overdue for that long, this process was stopped.
void DeviceRuns::look_for_standstill() {
  auto const now = owner_.surroundings().now();
  std::vector<std::uint64_t> late;
  for (auto const* const run : runs_.on_devices())
    if (run->reads_in_place() && now - run->next_deadline() >= standstill) late.push_back(run->spec().run);
  for (auto const id : late) {
    auto const& run = *runs_.find(id);
    auto const self = run.spec().program->rank;
    auto const still = std::chrono::duration_cast<std::chrono::milliseconds>(now - run.next_deadline());
    ends_.fail(id, {EngineErrc::aborted,
                    run.name_of(self) + " stood still for " + std::to_string(still.count()) +
                        " ms while it read memory of its peers, which they may have given to others since",
                    {self},
                    {}});
  }
}

Borrowed DeviceRuns::borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend, links::Borrow& told) {
  told.head.way = links::Way::in_frames;
  auto* const gpu = spec.gpu;
  if (gpu == nullptr) {
    told.why_not = "its part of the run lies in the host's memory";
    return nullptr;
  }
  auto found = borrowed_.find(*gpu, peer, lend, owner_.surroundings().now());
  if (found.arena != nullptr)
    told.head.way = links::Way::in_place;
  else if (found.is_final)
    told.head.way = links::Way::refused;
  told.why_not = found.why_not;
  owner_.traffic().set_why_not_ipc(peer.worker, Direction::from_peer, std::move(found.why_not));
  return std::move(found.arena);
}

}  // namespace chorus::engine
