// Makes per-peer metric families at a scrape, from the links' own counts: the data plane never calls a metrics library.
// Private to metrics/.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "metrics/families/families.hpp"
#include "metrics/state/link_traffic.hpp"

namespace chorus::metrics {

// Remembers which peers have series. Used by one thread at a time.
class LinkFamilies {
 public:
  explicit LinkFamilies(std::size_t max_peers) : max_peers_(max_peers) {}

  // Peers beyond max_peers, in the order in which they were first seen, are added up as peer="other".
  [[nodiscard]] Families collect(std::span<LinkTraffic const> links);

 private:
  [[nodiscard]] std::vector<LinkTraffic> folded(std::span<LinkTraffic const> links);

  std::size_t const max_peers_;
  std::set<std::string> named_;
};

}  // namespace chorus::metrics
