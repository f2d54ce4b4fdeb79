// What chorus_metrics_folded_families counts: an alert is on it.
#include <doctest/doctest.h>

#include <string>

#include "metrics/coordinator_metrics.hpp"
#include "metrics/worker_metrics.hpp"

using namespace chorus;
using namespace chorus::metrics;

namespace {

bool folds(std::string const& text, int families) {
  return text.find("\nchorus_metrics_folded_families " + std::to_string(families) + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("requests of unknown methods, and names that users choose, are no folded series") {
  CoordinatorMetrics metrics({}, 0);
  metrics.request("other", "", 400, 0);
  metrics.request("other", "/v1/groups/{name}", 405, 0);
  CoordinatorScrape scrape;
  scrape.groups = {{"other", 1, 2, 2}};
  CHECK(folds(metrics.text(scrape), 0));
  WorkerMetrics of_worker({}, 0);
  of_worker.identified("w", {"other", "other", "other", "other"});
  CHECK(folds(of_worker.text({}), 0));
}

TEST_CASE("groups and workers that are left out are reported as folded series are") {
  CoordinatorMetrics metrics({}, 0);
  CoordinatorScrape scrape;
  for (int i = 0; i < 64; ++i) scrape.groups.push_back({"g" + std::to_string(i), 1, 1, 1});
  for (int i = 0; i < 256; ++i) scrape.heartbeats.push_back({"w" + std::to_string(i), 1});
  CHECK(folds(metrics.text(scrape), 0));
  scrape.groups.push_back({"one more", 1, 1, 1});
  CHECK(folds(metrics.text(scrape), 2));
  scrape.heartbeats.push_back({"one more", 1});
  CHECK(folds(metrics.text(scrape), 3));
}
