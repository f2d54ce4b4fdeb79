// Collects the metrics of the coordinator's parts when they are scraped.
#pragma once

#include "metrics/state/coordinator_scrape.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/collectives/collectives.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {

// Called on the coordinator's thread.
[[nodiscard]] metrics::CoordinatorScrape scrape_of(Cluster const& cluster, Collectives const& collectives,
                                                   ParameterDirectory const& parameters, Events const& events,
                                                   Journal const& journal);

}  // namespace chorus::coordinator
