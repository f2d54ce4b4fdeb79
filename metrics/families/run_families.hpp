// Makes the metric families of runs from the totals of ledgers. Private to metrics/.
#pragma once

#include "metrics/families/families.hpp"
#include "metrics/runs/run_ledger.hpp"

namespace chorus::metrics {

// Kinds of runs beyond the first `kinds_max`, sorted by name, are added up as algorithm="other".
[[nodiscard]] Families run_families(LedgerTotals const& totals, std::size_t kinds_max = 512);

}  // namespace chorus::metrics
