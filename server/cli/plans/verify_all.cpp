#include "server/cli/plans/verify_all.hpp"

#include "collectives/algorithms/representative.hpp"
#include "collectives/verify/verify.hpp"

namespace chorus::cli {

VerifyTotals verify_all(std::span<plan::Algorithm const* const> algorithms, std::span<std::uint32_t const> ranks,
                        VerifyWatcher const& watcher) {
  VerifyTotals totals;
  for (auto const* algorithm : algorithms)
    for (auto const p : ranks) {
      for (auto const op : all_ops)
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, p)) {
          ++totals.plans;
          auto const report = verify::check(*algorithm, spec);
          if (report.ok) continue;
          ++totals.failed;
          watcher.failure(spec, report.failure);
        }
      watcher.progress(std::string(algorithm->name), p, totals);
    }
  return totals;
}

}  // namespace chorus::cli
