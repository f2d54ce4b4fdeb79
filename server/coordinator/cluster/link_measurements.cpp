#include "server/coordinator/cluster/link_measurements.hpp"

#include <algorithm>
#include <cmath>

namespace chorus::coordinator {

void LinkMeasurements::remember(End const& a, End const& b, Measured measured) {
  Key const key = std::minmax(a, b);
  if (auto const known = pairs_.find(key); known != pairs_.end()) {
    by_age_.erase(known->second.age);
    pairs_.erase(known);
  }
  pairs_.emplace(key, Entry{measured, by_age_.insert(by_age_.end(), key)});
  if (pairs_.size() <= pairs_max_) return;
  pairs_.erase(by_age_.front());
  by_age_.pop_front();
}

std::optional<LinkMeasurements::Measured> LinkMeasurements::find(End const& a, End const& b) const {
  auto const known = pairs_.find(Key(std::minmax(a, b)));
  if (known == pairs_.end()) return std::nullopt;
  return known->second.measured;
}

void LinkMeasurements::keep_only(Membership const& membership) {
  auto const is_there = [&](End const& end) {
    auto const* worker = membership.find(end.worker);
    return worker != nullptr && end_of(*worker) == end;
  };
  for (auto pair = pairs_.begin(); pair != pairs_.end();) {
    auto const present = pair++;
    if (is_there(present->first.first) && is_there(present->first.second)) continue;
    by_age_.erase(present->second.age);
    pairs_.erase(present);
  }
}

LinkMeasurements::End end_of(Worker const& worker) { return {worker.id, api::to_hex(worker.incarnation), worker.url}; }

std::optional<LinkMeasurements::Measured> measured_by(api::ProbeReport const& report) {
  auto const latency_s = std::max(0.0, (report.round_trip_s - report.own_round_trip_s) / 2);
  if (!(std::isfinite(latency_s) && std::isfinite(report.bytes_per_s) && report.bytes_per_s > 0)) return std::nullopt;
  return LinkMeasurements::Measured{latency_s, report.bytes_per_s};
}

}  // namespace chorus::coordinator
