// What a coordinator that does not lead counts. Every verb is thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "metrics/build/build.hpp"
#include "metrics/log_counter.hpp"
#include "metrics/state/leadership_scrape.hpp"
#include "metrics/state/service_state.hpp"

namespace chorus::metrics {

class StandbyMetrics {
 public:
  // As of CoordinatorMetrics.
  StandbyMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged = nullptr);
  ~StandbyMetrics();
  StandbyMetrics(StandbyMetrics const&) = delete;
  StandbyMetrics& operator=(StandbyMetrics const&) = delete;

  // As of CoordinatorMetrics.
  void refused(std::string_view reason);
  void loop_lag(double seconds);
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // The exposition, Content-Type `metrics::content_type`.
  [[nodiscard]] std::string text(ServiceState const& state, LeadershipScrape const& leadership) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
