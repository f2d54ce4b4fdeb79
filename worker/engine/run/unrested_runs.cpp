#include "worker/engine/run/unrested_runs.hpp"

#include <thread>
#include <utility>

namespace chorus::engine {

bool UnrestedRuns::rests(Run& run, TimePoint now) {
  if (!run.device_rests()) return false;
  give_back_borrowed(run);
  return run.has_back_what_it_lent(now);
}

// Uses the link on which the memory was borrowed: if that has ended, the peer needs no notice.
void UnrestedRuns::give_back_borrowed(Run& run) {
  if (!run.has_device() || std::exchange(run.has_given_back, true)) return;
  auto const& spec = run.spec();
  for (auto const& channel : run.receives()) {
    if (!channel->reads_in_place()) continue;
    for (auto& receive_connection : connections_.receives())
      if (!receive_connection->is_closed() && receive_connection->number() == channel->receive_connection_number)
        receive_connection->send_returned(spec.run, spec.epoch);
  }
}

void UnrestedRuns::add(std::unique_ptr<Run> run, std::optional<Failure> failure, TimePoint now) {
  runs_.push_back({std::move(run), std::move(failure), now + device_patience});
}

UnrestedRuns::TimePoint UnrestedRuns::next_deadline() const {
  auto next = TimePoint::max();
  for (auto const& each : runs_) next = std::min(next, each.give_up);
  if (!stuck_.empty() || borrowed_.has_leaving()) next = std::min(next, look_at_stuck_);
  return next;
}

bool UnrestedRuns::has_lent() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [this](Unrested const& each) { return !each.run->has_back_what_it_lent(surroundings_.now()); });
}

// A device that has not come to rest within device_patience is lost: the run ends, and memory that the device may still
// write to is kept.
bool UnrestedRuns::poll(Runs& dead) {
  auto const now = surroundings_.now();
  std::erase_if(stuck_, [this, now](auto const& run) { return rests(*run, now); });
  borrowed_.reap();
  look_at_stuck_ = now + stuck_pause;
  auto const is_over = [this, now](Unrested const& each) { return rests(*each.run, now) || now >= each.give_up; };
  bool moved = false;
  for (auto over = std::find_if(runs_.begin(), runs_.end(), is_over); over != runs_.end();
       over = std::find_if(runs_.begin(), runs_.end(), is_over)) {
    auto [run, failure, give_up] = std::move(*over);
    runs_.erase(over);
    bool const has_rest = rests(*run, now);
    auto& kept_in = has_rest ? dead : stuck_;
    kept_in.emplace_back(std::move(run))->end(failure, now, has_rest ? Run::Memory::goes : Run::Memory::stays);
    moved = true;
  }
  return moved;
}

// Uses real time, because the loop ends after this and the time of the surroundings may stand still. Peers that still
// read are not waited for: the caller has done that before (has_lent), and they notice the end of the links.
void UnrestedRuns::end_all(Runs& dead) {
  auto const until = std::chrono::steady_clock::now() + device_patience;
  auto const works = [](Unrested const& each) { return !each.run->device_rests(); };
  while (std::any_of(runs_.begin(), runs_.end(), works) && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  static_cast<void>(poll(dead));
  for (auto& each : runs_)
    stuck_.emplace_back(std::move(each.run))->end(each.failure, surroundings_.now(), Run::Memory::stays);
  runs_.clear();
}

}  // namespace chorus::engine
