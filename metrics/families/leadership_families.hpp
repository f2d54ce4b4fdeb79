// The series of one of several coordinators, whether it leads or not. Private to metrics/.
#pragma once

#include "metrics/families/families.hpp"
#include "metrics/state/leadership_scrape.hpp"

namespace chorus::metrics {

void add_leadership(Families& families, LeadershipScrape const& leadership);

}  // namespace chorus::metrics
