#include "metrics/worker_metrics.hpp"

#include <mutex>

#include "metrics/bandwidth.hpp"
#include "metrics/exposition.hpp"
#include "metrics/link_families.hpp"
#include "metrics/service_series.hpp"

namespace chorus::metrics {

class WorkerMetrics::Impl {
 public:
  Impl(Build const& build, double start_time_seconds)
      : service(registry, build, start_time_seconds),
        collectives(registry, Id::collectives),
        durations(registry, Id::collective_duration),
        steps(registry, Id::collective_step_duration),
        bandwidths(registry, Id::collective_bus_bandwidth),
        errors(registry, Id::collective_errors),
        lease_renewals(registry, Id::lease_renewals),
        tensors(registry, Id::tensors),
        tensor_bytes(registry, Id::tensor_bytes),
        links(max_peers) {}

  prometheus::Registry registry;
  ServiceSeries service;
  Series<prometheus::Counter> collectives;
  Series<prometheus::Histogram> durations;
  Series<prometheus::Histogram> steps;
  Series<prometheus::Histogram> bandwidths;
  Series<prometheus::Counter> errors;
  Series<prometheus::Counter> lease_renewals;
  Series<prometheus::Gauge> tensors;
  Series<prometheus::Gauge> tensor_bytes;
  std::mutex mutex;  // links
  LinkFamilies links;
};

WorkerMetrics::WorkerMetrics(Build const& build, double start_time_seconds)
    : impl_(std::make_unique<Impl>(build, start_time_seconds)) {}

WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::run_finished(FinishedRun const& run) {
  auto const op = name(run.op);
  impl_->collectives.with({op, run.algorithm, run.result}).Increment();
  if (run.result != "succeeded") {
    impl_->errors.with({op, run.kind}).Increment();
    return;
  }
  impl_->durations.with({op, run.algorithm}).Observe(run.seconds);
  if (run.steps > 0) impl_->steps.with({op, run.algorithm}).Observe(run.seconds / run.steps);
  double const bus_bytes = static_cast<double>(run.bytes) * bus_factor(run.op, run.ranks);
  if (bus_bytes > 0 && run.seconds > 0) impl_->bandwidths.with({op, run.algorithm}).Observe(bus_bytes / run.seconds);
}

void WorkerMetrics::lease_renewal(std::string_view result) { impl_->lease_renewals.with({result}).Increment(); }

void WorkerMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

std::string WorkerMetrics::text(Scrape const& scrape) {
  impl_->tensors.with({}).Set(static_cast<double>(scrape.tensors));
  impl_->tensor_bytes.with({}).Set(static_cast<double>(scrape.tensor_bytes));
  impl_->service.http_connections.with({}).Set(static_cast<double>(scrape.http_connections));
  auto families = impl_->registry.Collect();
  std::scoped_lock lock(impl_->mutex);
  for (auto& family : impl_->links.collect(scrape.links)) families.push_back(std::move(family));
  return exposition(std::move(families));
}

}  // namespace chorus::metrics
