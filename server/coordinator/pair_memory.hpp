// What pairs of workers have measured of the way between them. A state machine without clock or sockets.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "http/api/probes.hpp"
#include "server/coordinator/membership.hpp"

namespace chorus::coordinator {

class PairMemory {
 public:
  // A process at an address: a new incarnation, or one that has moved, has measured nothing.
  struct End {
    std::string worker;
    std::string incarnation;
    std::string url;
    auto operator<=>(End const&) const = default;
  };
  struct Measured {
    double latency_s = 0;  // as PairLink
    double bytes_per_s = 0;
  };

  // Above pairs_max the pair that was measured first is forgotten.
  explicit PairMemory(std::size_t pairs_max) : pairs_max_(pairs_max) {}

  // In both directions. What was known of the pair is replaced.
  void remember(End const& a, End const& b, Measured measured);
  [[nodiscard]] std::optional<Measured> find(End const& a, End const& b) const;

  // Forgets pairs with an end that is no worker of these, as it is now. One that is lost may come back.
  void keep_only(Membership const& membership);

  [[nodiscard]] std::size_t size() const { return pairs_.size(); }

 private:
  using Key = std::pair<End, End>;  // the lesser first
  struct Entry {
    Measured measured;
    std::list<Key>::iterator age;
  };

  std::size_t const pairs_max_;
  std::map<Key, Entry> pairs_;
  std::list<Key> by_age_;  // oldest first
};

[[nodiscard]] PairMemory::End end_of(Worker const& worker);

// What a probe tells of the way: none if no link can be like that.
[[nodiscard]] std::optional<PairMemory::Measured> measured_by(api::ProbeReport const& report);

}  // namespace chorus::coordinator
