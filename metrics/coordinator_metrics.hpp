// The metrics that a coordinator counts. Every function is thread-safe and costs a map look-up.
//
// Label values: op and algorithm as in the REST interface; result is succeeded, failed or cancelled; kind is the code
// of a problem; route is the router's pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/build/build.hpp"
#include "metrics/log_counter.hpp"
#include "metrics/state/coordinator_scrape.hpp"

namespace chorus::metrics {

// A collective that the coordinator has run, or tried to.
struct FinishedCollective {
  std::string_view op;
  std::string_view algorithm;    // "none" if it was not planned
  std::string_view result;       // succeeded, failed, cancelled
  double seconds = 0;            // from admission to commit
  std::uint64_t bytes = 0;       // of one rank's tensor
  double skew_seconds = 0;       // between the first and the last rank that began
  double predicted_seconds = 0;  // of the cost model
  double slowest_rank_seconds = 0;
};

class CoordinatorMetrics {
 public:
  // Number of workers with series of their own; later workers are counted as worker="other".
  static constexpr std::size_t max_workers = 64;

  // start_time_seconds: wall clock, since 1970. If `logged` is null, lines of the log are not counted.
  CoordinatorMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged = nullptr);
  ~CoordinatorMetrics();
  CoordinatorMetrics(CoordinatorMetrics const&) = delete;
  CoordinatorMetrics& operator=(CoordinatorMetrics const&) = delete;

  // `choice`, what chose the algorithm: model, request.
  void collective_planned(std::string_view op, std::string_view algorithm, std::string_view choice);
  // `seconds` from the request to the launch.
  void collective_launched(std::string_view op, double seconds);
  // Only successful collectives enter the histograms.
  void collective_finished(FinishedCollective const& collective);
  // Called in addition to collective_finished() if the collective failed.
  void collective_failed(std::string_view op, std::string_view kind);
  // A worker was the straggler of a successful collective.
  void straggled(std::string_view worker);
  // Number of collectives of this operation that run without progress now.
  void collectives_stalled(std::string_view op, std::size_t count);

  void members(std::size_t ready, std::size_t lost);
  void epoch_changed(std::string_view reason);  // request, members, trouble
  void taken_over();                            // another process took over a worker's name
  // result: succeeded, failed. wall_seconds: now, since 1970.
  void checkpoint_ended(std::string_view result, double seconds, double wall_seconds);
  // A checkpoint was due, and there was no parameter.
  void checkpoint_needless(double wall_seconds);
  // Checkpoints are made by themselves from now on.
  void checkpoints_begin(double wall_seconds);

  // Counts a write that succeeded.
  void journal_written(double seconds);

  // Refusals before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

  void loop_lag(double seconds);
  // The values of an http::Exchange; `route` is empty if none matched.
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // Returns the exposition; its Content-Type is `metrics::content_type`.
  [[nodiscard]] std::string text(CoordinatorScrape const& scrape) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
