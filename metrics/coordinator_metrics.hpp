// What a coordinator counts. Every verb is thread-safe and costs a map look-up.
//
// Label values are the names of the house: op and algorithm as in the REST interface, result one of succeeded, failed,
// cancelled, kind the code of a problem, route the router's pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/build.hpp"
#include "metrics/coordinator_scrape.hpp"
#include "metrics/log_counter.hpp"

namespace chorus::metrics {

// A collective that the coordinator has run, or tried to.
struct FinishedCollective {
  std::string_view op;
  std::string_view algorithm;    // "none" if it was not planned
  std::string_view result;       // succeeded, failed, cancelled
  double seconds = 0;            // from admission to commit
  std::uint64_t bytes = 0;       // of one rank's tensor
  double skew_seconds = 0;       // between the first and the last rank that began
  double predicted_seconds = 0;  // by the model
  double slowest_rank_seconds = 0;
};

class CoordinatorMetrics {
 public:
  // How many workers have series of their own; later ones are folded into worker="other".
  static constexpr std::size_t max_workers = 64;

  // start_time_seconds: wall clock, since 1970. `logged` may be null: then lines are not counted.
  CoordinatorMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged = nullptr);
  ~CoordinatorMetrics();
  CoordinatorMetrics(CoordinatorMetrics const&) = delete;
  CoordinatorMetrics& operator=(CoordinatorMetrics const&) = delete;

  // The algorithm was chosen by `choice`: model, request.
  void collective_planned(std::string_view op, std::string_view algorithm, std::string_view choice);
  // So long after it was asked for.
  void collective_launched(std::string_view op, double seconds);
  // Only collectives that succeeded enter the histograms.
  void collective_finished(FinishedCollective const& collective);
  // Beside collective_finished(), of one that failed: why.
  void collective_failed(std::string_view op, std::string_view kind);
  // A member came late to a collective that succeeded.
  void straggled(std::string_view worker);
  // How many collectives of this operation run and do not move, now.
  void collectives_stalled(std::string_view op, std::size_t count);

  void members(std::size_t ready, std::size_t lost);
  void epoch_changed(std::string_view reason);  // request, members, trouble
  // result: succeeded, failed. wall_seconds: now, since 1970.
  void checkpoint_ended(std::string_view result, double seconds, double wall_seconds);

  // Before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

  void loop_lag(double seconds);
  // Of http::Exchange, as plain values; `route` "" when none matched.
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // The exposition, Content-Type `metrics::content_type`.
  [[nodiscard]] std::string text(CoordinatorScrape const& scrape) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
