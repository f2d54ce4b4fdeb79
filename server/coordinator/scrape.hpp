// What the coordinator's parts say of themselves when somebody scrapes.
#pragma once

#include "metrics/coordinator_scrape.hpp"
#include "server/coordinator/cluster.hpp"
#include "server/coordinator/collectives.hpp"
#include "server/coordinator/events.hpp"

namespace chorus::coordinator {

// On the coordinator's thread.
[[nodiscard]] metrics::CoordinatorScrape scrape_of(Cluster const& cluster, Collectives const& collectives,
                                                   Events const& events, Journal const& journal);

}  // namespace chorus::coordinator
