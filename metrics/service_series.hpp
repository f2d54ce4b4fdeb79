// What worker and coordinator export alike: the build, the process, HTTP. Private to metrics/.
#pragma once

#include "metrics/build.hpp"
#include "metrics/series.hpp"

namespace chorus::metrics {

struct ServiceSeries {
  ServiceSeries(prometheus::Registry& registry, Build const& build, double start_time_seconds);

  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // certificate_expiry_seconds: since 1970; 0 without TLS.
  void security(bool authenticates, double certificate_expiry_seconds);
  void refused(std::string_view reason);

  Series<prometheus::Gauge> build_info;
  Series<prometheus::Gauge> start_time;
  Series<prometheus::Histogram> http_requests;
  Series<prometheus::Gauge> http_connections;
  Series<prometheus::Gauge> auth_enabled;
  Series<prometheus::Counter> auth_refusals;
  Series<prometheus::Gauge> certificate_expiry;
};

// "2xx" for 200..299; "other" for what is no status.
[[nodiscard]] std::string_view code_class(unsigned status);

}  // namespace chorus::metrics
