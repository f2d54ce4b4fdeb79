#include "metrics/coordinator_metrics.hpp"

#include "metrics/exposition.hpp"
#include "metrics/service_series.hpp"

namespace chorus::metrics {

class CoordinatorMetrics::Impl {
 public:
  Impl(Build const& build, double start_time_seconds)
      : service(registry, build, start_time_seconds),
        collectives(registry, Id::collectives),
        durations(registry, Id::collective_duration),
        payloads(registry, Id::collective_payload),
        skews(registry, Id::collective_arrival_skew),
        errors(registry, Id::collective_errors),
        members(registry, Id::members),
        membership_changes(registry, Id::membership_changes),
        checkpoint_durations(registry, Id::checkpoint_duration),
        checkpoint_timestamp(registry, Id::checkpoint_timestamp) {
    members.with({"ready"}).Set(0);
    members.with({"lost"}).Set(0);
    membership_changes.with({});
  }

  prometheus::Registry registry;
  ServiceSeries service;
  Series<prometheus::Counter> collectives;
  Series<prometheus::Histogram> durations;
  Series<prometheus::Histogram> payloads;
  Series<prometheus::Histogram> skews;
  Series<prometheus::Counter> errors;
  Series<prometheus::Gauge> members;
  Series<prometheus::Counter> membership_changes;
  Series<prometheus::Histogram> checkpoint_durations;
  Series<prometheus::Gauge> checkpoint_timestamp;
};

CoordinatorMetrics::CoordinatorMetrics(Build const& build, double start_time_seconds)
    : impl_(std::make_unique<Impl>(build, start_time_seconds)) {}

CoordinatorMetrics::~CoordinatorMetrics() = default;

void CoordinatorMetrics::collective_finished(std::string_view op, std::string_view algorithm, std::string_view result,
                                             double seconds, std::uint64_t bytes, double skew_seconds) {
  impl_->collectives.with({op, algorithm, result}).Increment();
  if (result != "succeeded") return;
  impl_->durations.with({op, algorithm}).Observe(seconds);
  impl_->payloads.with({op}).Observe(static_cast<double>(bytes));
  impl_->skews.with({op}).Observe(skew_seconds);
}

void CoordinatorMetrics::collective_failed(std::string_view op, std::string_view kind) {
  impl_->errors.with({op, kind}).Increment();
}

void CoordinatorMetrics::members(std::size_t ready, std::size_t lost) {
  impl_->members.with({"ready"}).Set(static_cast<double>(ready));
  impl_->members.with({"lost"}).Set(static_cast<double>(lost));
}

void CoordinatorMetrics::epoch_changed() { impl_->membership_changes.with({}).Increment(); }

void CoordinatorMetrics::checkpoint_ended(std::string_view result, double seconds, double wall_seconds) {
  impl_->checkpoint_durations.with({result}).Observe(seconds);
  if (result == "succeeded") impl_->checkpoint_timestamp.with({}).Set(wall_seconds);
}

void CoordinatorMetrics::security(bool authenticates, double certificate_expiry_seconds) {
  impl_->service.security(authenticates, certificate_expiry_seconds);
}

void CoordinatorMetrics::refused(std::string_view reason) { impl_->service.refused(reason); }

void CoordinatorMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

void CoordinatorMetrics::http_connections(std::size_t open) {
  impl_->service.http_connections.with({}).Set(static_cast<double>(open));
}

std::string CoordinatorMetrics::text() const { return exposition(impl_->registry.Collect()); }

}  // namespace chorus::metrics
