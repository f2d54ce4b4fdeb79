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

// Whether the rank that began last is worth naming: it was late by so many seconds in a collective that took so long.
[[nodiscard]] bool is_straggler(double skew_seconds, double seconds);

class CoordinatorMetrics {
 public:
  // How many workers have series of their own; later ones are folded into worker="other".
  static constexpr std::size_t max_workers = 64;

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

  // The rank of a collective that succeeded which began last, see `is_straggler`.
  void straggled(std::string_view worker);
  // How many collectives of this operation run and do not move, now.
  void collectives_stalled(std::string_view op, std::size_t count);

  void members(std::size_t ready, std::size_t lost);
  void epoch_changed();
  // result: succeeded, failed. wall_seconds: now, since 1970.
  void checkpoint_ended(std::string_view result, double seconds, double wall_seconds);

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
