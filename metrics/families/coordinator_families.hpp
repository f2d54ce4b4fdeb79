// Makes the metric families of a CoordinatorScrape. Private to metrics/.
#pragma once

#include "metrics/families/families.hpp"
#include "metrics/state/coordinator_scrape.hpp"

namespace chorus::metrics {

inline constexpr std::size_t groups_shown_max = 64;
inline constexpr std::size_t heartbeats_shown_max = 256;

[[nodiscard]] Families coordinator_families(CoordinatorScrape const& scrape);
// Number of these families that lack the series of some groups or workers.
[[nodiscard]] std::size_t cut_families(CoordinatorScrape const& scrape);

}  // namespace chorus::metrics
