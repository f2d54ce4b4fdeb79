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
        pushes(registry, Id::parameter_pushes),
        push_durations(registry, Id::parameter_push_duration),
        pulls(registry, Id::parameter_pulls),
        staleness(registry, Id::parameter_staleness),
        waits(registry, Id::parameter_waits),
        nonfinite(registry, Id::parameter_nonfinite),
        shards(registry, Id::parameter_shards),
        shard_bytes(registry, Id::parameter_bytes),
        backups_behind(registry, Id::parameter_backups_behind),
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
  Series<prometheus::Counter> pushes;
  Series<prometheus::Histogram> push_durations;
  Series<prometheus::Counter> pulls;
  Series<prometheus::Histogram> staleness;
  Series<prometheus::Counter> waits;
  Series<prometheus::Counter> nonfinite;
  Series<prometheus::Gauge> shards;
  Series<prometheus::Gauge> shard_bytes;
  Series<prometheus::Gauge> backups_behind;
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

void WorkerMetrics::parameter_pushed(std::string_view kind, std::string_view result, double seconds) {
  impl_->pushes.with({kind, result}).Increment();
  if (result == "applied") impl_->push_durations.with({kind}).Observe(seconds);
}

void WorkerMetrics::parameter_pulled(std::string_view result) { impl_->pulls.with({result}).Increment(); }

void WorkerMetrics::parameter_staleness(std::uint64_t clocks) {
  impl_->staleness.with({}).Observe(static_cast<double>(clocks));
}

void WorkerMetrics::parameter_waited(std::string_view what) { impl_->waits.with({what}).Increment(); }

void WorkerMetrics::parameter_nonfinite(std::uint64_t elements) {
  impl_->nonfinite.with({}).Increment(static_cast<double>(elements));
}

void WorkerMetrics::security(bool authenticates, double certificate_expiry_seconds) {
  impl_->service.security(authenticates, certificate_expiry_seconds);
}

void WorkerMetrics::refused(std::string_view reason) { impl_->service.refused(reason); }

void WorkerMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

std::string WorkerMetrics::text(Scrape const& scrape) {
  impl_->tensors.with({}).Set(static_cast<double>(scrape.tensors));
  impl_->tensor_bytes.with({}).Set(static_cast<double>(scrape.tensor_bytes));
  impl_->service.http_connections.with({}).Set(static_cast<double>(scrape.http_connections));
  for (auto const& [role, shards] : {std::pair{"owner", scrape.owned}, {"backup", scrape.backups}}) {
    impl_->shards.with({role}).Set(static_cast<double>(shards.count));
    impl_->shard_bytes.with({role}).Set(static_cast<double>(shards.bytes));
  }
  impl_->backups_behind.with({}).Set(static_cast<double>(scrape.backups_behind));
  auto families = impl_->registry.Collect();
  std::scoped_lock lock(impl_->mutex);
  for (auto& family : impl_->links.collect(scrape.links)) families.push_back(std::move(family));
  return exposition(std::move(families));
}

}  // namespace chorus::metrics
