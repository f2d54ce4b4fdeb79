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

namespace chorus::metrics {

class CoordinatorMetrics {
 public:
  // start_time_seconds: wall clock, since 1970.
  CoordinatorMetrics(Build const& build, double start_time_seconds);
  ~CoordinatorMetrics();
  CoordinatorMetrics(CoordinatorMetrics const&) = delete;
  CoordinatorMetrics& operator=(CoordinatorMetrics const&) = delete;

  // `seconds` from admission to commit, `bytes` of one rank's tensor, `skew_seconds` between the first and the last
  // rank that confirmed the launch. Only collectives that succeeded enter the histograms.
  void collective_finished(std::string_view op, std::string_view algorithm, std::string_view result, double seconds,
                           std::uint64_t bytes, double skew_seconds);
  // Beside collective_finished(..., "failed", ...): why.
  void collective_failed(std::string_view op, std::string_view kind);

  void members(std::size_t ready, std::size_t lost);
  void epoch_changed();
  // result: succeeded, failed. wall_seconds: now, since 1970.
  void checkpoint_ended(std::string_view result, double seconds, double wall_seconds);

  // When something of it may have changed, such as before a scrape; see ServiceSeries.
  void security(bool authenticates, double certificate_expiry_seconds);
  // Before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

  // Of http::Exchange, as plain values; `route` "" when none matched.
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);
  void http_connections(std::size_t open);

  // The exposition, Content-Type `metrics::content_type`.
  [[nodiscard]] std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
