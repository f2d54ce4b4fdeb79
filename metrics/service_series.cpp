#include "metrics/service_series.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "metrics/families/exposition.hpp"
#include "metrics/families/process_families.hpp"

namespace chorus::metrics {
namespace {

constexpr std::array<std::string_view, 7> rejections{
    "overload", "slow_header", "header_too_large", "malformed", "not_found", "method_not_allowed", "other"};

prometheus::MetricFamily log_family(LogCounter const& logged) {
  constexpr std::array<std::pair<spdlog::level::level_enum, std::string_view>, 6> levels{
      {{spdlog::level::trace, "trace"},
       {spdlog::level::debug, "debug"},
       {spdlog::level::info, "info"},
       {spdlog::level::warn, "warning"},
       {spdlog::level::err, "error"},
       {spdlog::level::critical, "critical"}}};
  auto family = make_family(Id::log_messages);
  for (auto const& [level, name] : levels)
    add_value(family, Id::log_messages, {name}, static_cast<double>(logged.count(level)));
  return family;
}

// Labels with an ordinary value "other", or with names that users choose and that are not folded.
constexpr std::array<std::string_view, 8> never_folded{"reason", "code_class", "method", "group",
                                                       "region", "zone",       "rack",   "host"};

bool is_folded(prometheus::ClientMetric const& metric) {
  return std::ranges::any_of(metric.label, [](auto const& label) {
    return label.value == "other" && std::ranges::find(never_folded, label.name) == never_folded.end();
  });
}

}  // namespace

ServiceSeries::ServiceSeries(prometheus::Registry& registry, Build const& build, double start_time_seconds,
                             std::shared_ptr<LogCounter const> log_counter)
    : build_info(registry, Id::build_info),
      start_time(registry, Id::process_start_time),
      http_requests(registry, Id::http_request_duration),
      http_rejected(registry, Id::http_rejected),
      auth_refusals(registry, Id::auth_refusals),
      lag(registry, Id::event_loop_lag),
      logged(std::move(log_counter)) {
  build_info
      .with({build.version, build.commit, build.compiler, build.boost, build.cuda, build.tls, build.plan_generator})
      .Set(1);
  start_time.with({}).Set(start_time_seconds);
  for (auto reason : rejections) http_rejected.with({reason});
  lag.with({});
}

void ServiceSeries::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  http_requests.with({method, route.empty() ? "none" : route, code_class(status)}).Observe(seconds);
  if (route.empty() || status == 405) http_rejected.with({rejection(status)}).Increment();
}

std::string ServiceSeries::text(prometheus::Registry const& registry, ServiceState const& state, Families more,
                                std::size_t cut_families) {
  auto families = registry.Collect();
  std::ranges::move(more, std::back_inserter(families));
  std::ranges::move(process_families(), std::back_inserter(families));
  families.push_back(single(Id::ready, state.ready ? 1 : 0));
  families.push_back(single(Id::draining, state.draining ? 1 : 0));
  families.push_back(single(Id::http_connections, static_cast<double>(state.http_connections)));
  families.push_back(single(Id::http_in_flight, static_cast<double>(state.http_in_flight)));
  families.push_back(single(Id::auth_enabled, state.authenticates ? 1 : 0));
  if (state.certificate_expiry_seconds)
    families.push_back(single(Id::tls_certificate_expiry, *state.certificate_expiry_seconds));
  if (!state.disk_waits.empty()) {
    auto waits = make_family(Id::disk_wait);
    for (auto const& [disk, seconds] : state.disk_waits) add_value(waits, Id::disk_wait, {disk}, seconds);
    families.push_back(std::move(waits));
  }
  if (state.memory.limit_bytes != 0)
    families.push_back(single(Id::memory_limit, static_cast<double>(state.memory.limit_bytes)));
  if (state.memory.used_bytes)
    families.push_back(single(Id::memory_used, static_cast<double>(*state.memory.used_bytes)));
  if (logged) families.push_back(log_family(*logged));
  auto const folded =
      std::ranges::count_if(families, [](auto const& family) { return std::ranges::any_of(family.metric, is_folded); });
  auto const incomplete = static_cast<std::size_t>(folded) + cut_families;
  families.push_back(single(Id::metrics_folded, static_cast<double>(incomplete)));
  return exposition(std::move(families));
}

void ServiceSeries::refused(std::string_view reason) { auth_refusals.with({reason}).Increment(); }

std::string_view code_class(unsigned status) {
  static constexpr std::array<std::string_view, 5> classes{"1xx", "2xx", "3xx", "4xx", "5xx"};
  return status >= 100 && status < 600 ? classes[status / 100 - 1] : "other";
}

std::string_view rejection(unsigned status) {
  switch (status) {
    case 503:
      return "overload";
    case 408:
      return "slow_header";
    case 431:
      return "header_too_large";
    case 400:
      return "malformed";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    default:
      return "other";
  }
}

}  // namespace chorus::metrics
