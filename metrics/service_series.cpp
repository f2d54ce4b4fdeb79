#include "metrics/service_series.hpp"

#include <array>

namespace chorus::metrics {

ServiceSeries::ServiceSeries(prometheus::Registry& registry, Build const& build, double start_time_seconds)
    : build_info(registry, Id::build_info),
      start_time(registry, Id::process_start_time),
      http_requests(registry, Id::http_request_duration),
      http_connections(registry, Id::http_connections),
      auth_enabled(registry, Id::auth_enabled),
      auth_refusals(registry, Id::auth_refusals),
      certificate_expiry(registry, Id::tls_certificate_expiry) {
  build_info.with({build.version, build.compiler, build.boost}).Set(1);
  start_time.with({}).Set(start_time_seconds);
  http_connections.with({}).Set(0);
  auth_enabled.with({}).Set(0);
}

void ServiceSeries::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  http_requests.with({method, route.empty() ? "none" : route, code_class(status)}).Observe(seconds);
}

void ServiceSeries::security(bool authenticates, double certificate_expiry_seconds) {
  auth_enabled.with({}).Set(authenticates ? 1 : 0);
  if (certificate_expiry_seconds > 0) certificate_expiry.with({}).Set(certificate_expiry_seconds);
}

void ServiceSeries::refused(std::string_view reason) { auth_refusals.with({reason}).Increment(); }

std::string_view code_class(unsigned status) {
  static constexpr std::array<std::string_view, 5> classes{"1xx", "2xx", "3xx", "4xx", "5xx"};
  return status >= 100 && status < 600 ? classes[status / 100 - 1] : "other";
}

}  // namespace chorus::metrics
