#include "metrics/standby_metrics.hpp"

#include "metrics/families/leadership_families.hpp"
#include "metrics/service_series.hpp"

namespace chorus::metrics {

class StandbyMetrics::Impl {
 public:
  Impl(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged)
      : service(registry, build, start_time_seconds, std::move(logged)) {}

  prometheus::Registry registry;
  ServiceSeries service;
};

StandbyMetrics::StandbyMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged)
    : impl_(std::make_unique<Impl>(build, start_time_seconds, std::move(logged))) {}

StandbyMetrics::~StandbyMetrics() = default;

void StandbyMetrics::refused(std::string_view reason) { impl_->service.refused(reason); }
void StandbyMetrics::loop_lag(double seconds) { impl_->service.loop_lag(seconds); }

void StandbyMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

std::string StandbyMetrics::text(ServiceState const& state, LeadershipScrape const& leadership) const {
  Families families;
  add_leadership(families, leadership);
  return impl_->service.text(impl_->registry, state, std::move(families));
}

}  // namespace chorus::metrics
