// The series that worker and coordinator have in common: build, process, HTTP, log. Private to metrics/.
#pragma once

#include <memory>

#include "metrics/build/build.hpp"
#include "metrics/families/families.hpp"
#include "metrics/log_counter.hpp"
#include "metrics/series.hpp"
#include "metrics/state/service_state.hpp"

namespace chorus::metrics {

struct ServiceSeries {
  ServiceSeries(prometheus::Registry& registry, Build const& build, double start_time_seconds,
                std::shared_ptr<LogCounter const> logged);

  void request(std::string_view method, std::string_view route, unsigned status, double seconds);
  void loop_lag(double seconds) { lag.with({}).Observe(seconds); }

  // Returns the text of GET /metrics: the registry's families, those of the state, and `more`, of which `cut_families`
  // lack series.
  [[nodiscard]] std::string text(prometheus::Registry const& registry, ServiceState const& state, Families more,
                                 std::size_t cut_families = 0);

  void refused(std::string_view reason);

  Series<prometheus::Gauge> build_info;
  Series<prometheus::Gauge> start_time;
  Series<prometheus::Histogram> http_requests;
  Series<prometheus::Counter> http_rejected;
  Series<prometheus::Counter> auth_refusals;
  Series<prometheus::Histogram> lag;
  std::shared_ptr<LogCounter const> const logged;
};

// "2xx" for 200..299; "other" for a number that is no status.
[[nodiscard]] std::string_view code_class(unsigned status);

// The reason why a request reached no handler.
[[nodiscard]] std::string_view rejection(unsigned status);

}  // namespace chorus::metrics
