// Measured links between pairs of workers. A state machine without clock or sockets.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "http/api/cluster/probes.hpp"
#include "server/coordinator/membership/membership.hpp"

namespace chorus::coordinator {

class LinkMeasurements {
 public:
  // A process at an address: a new incarnation or address has no measurements.
  struct End {
    std::string worker;
    std::string incarnation;
    std::string url;
    auto operator<=>(End const&) const = default;
  };
  struct Measured {
    double latency_s = 0;  // as in PairLink
    double bytes_per_s = 0;
  };

  // Above pairs_max the pair that was measured first is forgotten.
  explicit LinkMeasurements(std::size_t pairs_max) : pairs_max_(pairs_max) {}

  // Stores the link for both directions, and replaces an earlier one.
  void remember(End const& a, End const& b, Measured measured);
  [[nodiscard]] std::optional<Measured> find(End const& a, End const& b) const;

  // Forgets pairs with an end that is no longer a worker with this incarnation and address. Lost workers are kept,
  // because they may come back.
  void keep_only(Membership const& membership);

  [[nodiscard]] std::size_t size() const { return pairs_.size(); }

 private:
  using Key = std::pair<End, End>;  // the smaller end first
  struct Entry {
    Measured measured;
    std::list<Key>::iterator age;
  };

  std::size_t const pairs_max_;
  std::map<Key, Entry> pairs_;
  std::list<Key> by_age_;  // oldest first
};

[[nodiscard]] LinkMeasurements::End end_of(Worker const& worker);

// Returns the link that a probe found; empty for impossible values.
[[nodiscard]] std::optional<LinkMeasurements::Measured> measured_by(api::ProbeReport const& report);

}  // namespace chorus::coordinator
