// MeasuredLevels: adjusts the constants of levels to measured links.
#pragma once

#include <array>
#include <cstddef>
#include <deque>

#include "collectives/model/constants.hpp"

namespace chorus::model {

// A value without a clock; not thread-safe.
//
// A level has the median of its links: pairs that measured while others used the same wires found too little bandwidth,
// and one such pair must not decide for all. A measurement across a known, slower uplink tells the speed of the uplink,
// not of the link. Several flows share the uplink; as the speed of a link it would price each flow as if it were alone.
class MeasuredLevels {
 public:
  static constexpr std::size_t links_remembered = 15;  // per level, the newest
  // A link that was measured up to this factor slower than an uplink it crosses is assumed to be limited by that
  // uplink.
  static constexpr double explained_by_uplink = 1.25;

  explicit MeasuredLevels(Constants const& before) : before_(before), constants_(before) {}

  // Adds a measured link. Both numbers are positive and finite. `level` is not host.
  void add(Level level, double alpha_s, double bytes_per_s);

  [[nodiscard]] Constants const& constants() const { return constants_; }

 private:
  Constants before_;  // for levels without measurements
  Constants constants_;
  std::array<std::deque<LinkCost>, all_levels.size()> measured_;
};

}  // namespace chorus::model
