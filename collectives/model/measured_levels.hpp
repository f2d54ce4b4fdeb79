// What measured links teach about the constants of their levels.
#pragma once

#include <array>
#include <cstddef>
#include <deque>

#include "collectives/model/constants.hpp"

namespace chorus::model {

// A value without clock; not thread-safe.
//
// A level is as its links are in the middle: who measured while others used the same wires found too little, and one
// such pair should not decide for all. Of a link that crosses an uplink which is known, and slower, a measurement tells
// of the uplink: that stays what all share, or several flows at once would be priced as if each had a link so slow.
class MeasuredLevels {
 public:
  static constexpr std::size_t links_remembered = 15;  // of every level, the newest
  // A link measured up to so much slower than an uplink it crosses is as fast as that uplink lets it be.
  static constexpr double explained_by_uplink = 1.25;

  explicit MeasuredLevels(Constants const& before) : before_(before), constants_(before) {}

  // Both positive and finite. `level` is not host.
  void add(Level level, double alpha_s, double bytes_per_s);

  [[nodiscard]] Constants const& constants() const { return constants_; }

 private:
  Constants before_;  // until anything is measured
  Constants constants_;
  std::array<std::deque<LinkCost>, all_levels.size()> measured_;
};

}  // namespace chorus::model
