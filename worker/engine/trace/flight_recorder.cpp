#include "worker/engine/trace/flight_recorder.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "collectives/core/fetch_soon.hpp"
#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine {

std::uint32_t FlightLane::add(std::shared_ptr<FlightKind const> kind) {
  std::lock_guard const lock(kinds_mutex_);
  if (kinds_.size() >= 2 * capacity) forget_kinds();
  while (kinds_.contains(next_kind_)) next_kind_ = (next_kind_ + 1) % kinds_max;
  kinds_.emplace(next_kind_, std::move(kind));
  return next_kind_;
}

// Removes kinds that no caller holds any more and no slot names.
void FlightLane::forget_kinds() {
  std::set<std::uint32_t> named;
  for (auto const& slot : slots_)
    named.insert(static_cast<std::uint32_t>(slot.kind_and_ns.load(std::memory_order_relaxed) >> 40));
  std::erase_if(kinds_,
                [&named](auto const& entry) { return entry.second.use_count() == 1 && !named.contains(entry.first); });
}

void FlightLane::read(std::vector<Flight>& flights) const {
  std::lock_guard const lock(kinds_mutex_);
  for (auto const& slot : slots_) {
    auto const version = slot.version.load(std::memory_order_acquire);
    auto const sequence = slot.sequence.load(std::memory_order_acquire);
    auto const started_ns = slot.started_ns.load(std::memory_order_acquire);
    auto const kind_and_ns = slot.kind_and_ns.load(std::memory_order_acquire);
    if (version == 0 || version % 2 != 0 || slot.version.load(std::memory_order_relaxed) != version) continue;
    auto const kind = kinds_.find(static_cast<std::uint32_t>(kind_and_ns >> 40));
    if (kind == kinds_.end()) continue;
    Flight flight;
    flight.kind = kind->second;
    flight.run = local_run_number(flight.kind->group, flight.kind->epoch, sequence);
    flight.state = "succeeded";
    flight.started = std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(started_ns));
    flight.statistics = flight.kind->statistics;
    flight.statistics.duration = std::chrono::nanoseconds(kind_and_ns & ns_max);
    flights.push_back(std::move(flight));
  }
}

void FlightRecorder::add(Flight&& flight) {
  std::lock_guard const lock(mutex_);
  if (flights_.size() < capacity) {
    flights_.push_back(std::move(flight));
    return;
  }
  // Entries older than `capacity` calls have left the caches: a small call would spend a tenth of its time on the miss.
  auto const after = [](std::size_t at, std::size_t by) { return (at + by) % capacity; };
  fetch_soon(flights_[after(oldest_, 2)]);
  auto const& next = flights_[after(oldest_, 1)].instructions;
  fetch_soon(next.data(), next.size() * sizeof(FlightStep));
  flights_[std::exchange(oldest_, after(oldest_, 1))] = std::move(flight);
}

std::shared_ptr<FlightLane> FlightRecorder::make_lane() {
  std::lock_guard const lock(mutex_);
  auto const is_of_the_gone = [](auto const& lane) { return lane.use_count() == 1; };
  auto gone = static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(), is_of_the_gone));
  std::erase_if(lanes_,
                [&](auto const& lane) { return is_of_the_gone(lane) && gone > lanes_of_the_gone_max && gone-- != 0; });
  return lanes_.emplace_back(std::make_shared<FlightLane>());
}

std::vector<Flight> FlightRecorder::last() const {
  std::vector<Flight> flights;
  {
    std::lock_guard const lock(mutex_);
    flights.assign(flights_.begin(), flights_.end());
    for (auto const& lane : lanes_) lane->read(flights);
  }
  std::sort(flights.begin(), flights.end(),
            [](Flight const& a, Flight const& b) { return std::tie(a.started, a.run) > std::tie(b.started, b.run); });
  if (flights.size() > capacity) flights.resize(capacity);
  return flights;
}

void FlightRecorder::stalled(RunProgress run) {
  std::lock_guard const one_at_a_time(telling_);
  {
    std::lock_guard const lock(mutex_);
    stalls_.insert_or_assign(run.run, run);
  }
  if (options_.on_stall) options_.on_stall(run, true);
}

void FlightRecorder::goes_on(std::uint64_t run) {
  std::lock_guard const one_at_a_time(telling_);
  std::optional<RunProgress> stalled;
  {
    std::lock_guard const lock(mutex_);
    auto entry = stalls_.extract(run);
    if (entry.empty()) return;
    stalled = std::move(entry.mapped());
  }
  if (options_.on_stall) options_.on_stall(*stalled, false);
}

std::vector<RunProgress> FlightRecorder::stalls() const {
  std::lock_guard const lock(mutex_);
  std::vector<RunProgress> all;
  for (auto const& [run, progress] : stalls_) all.push_back(progress);
  return all;
}

}  // namespace chorus::engine
