#include "metrics/worker_metrics.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "metrics/families/gpu_families.hpp"
#include "metrics/families/link_families.hpp"
#include "metrics/families/run_families.hpp"
#include "metrics/service_series.hpp"

namespace chorus::metrics {

class WorkerMetrics::Impl {
 public:
  Impl(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged)
      : service(registry, build, start_time_seconds, std::move(logged)),
        lease_renewals(registry, Id::lease_renewals),
        pushes(registry, Id::parameter_pushes),
        push_durations(registry, Id::parameter_push_duration),
        pulls(registry, Id::parameter_pulls),
        staleness(registry, Id::parameter_staleness),
        waits(registry, Id::parameter_waits),
        nonfinite(registry, Id::parameter_nonfinite),
        shards(registry, Id::parameter_shards),
        shard_bytes(registry, Id::parameter_bytes),
        rows(registry, Id::parameter_rows),
        rows_created(registry, Id::parameter_rows_created),
        log_records(registry, Id::parameter_log_records),
        log_bytes(registry, Id::parameter_log_bytes),
        log_syncs(registry, Id::parameter_log_sync_duration),
        log_truncations(registry, Id::parameter_log_truncations),
        log_recoveries(registry, Id::parameter_log_recoveries),
        log_errors(registry, Id::parameter_log_errors),
        links(max_peers) {
    for (auto* const counter : {&nonfinite, &rows_created, &log_records, &log_bytes, &log_truncations, &log_errors})
      counter->with({});
    for (auto const* const result : {"recovered", "refused"}) log_recoveries.with({result});
  }

  // Closes ledgers that no caller holds any more: their counts are kept, their memory is freed.
  LedgerTotals runs() {
    std::erase_if(ledgers, [this](auto const& ledger) {
      if (ledger.use_count() != 1) return false;
      ledger->add_to(closed);
      return true;
    });
    auto totals = closed;
    own.add_to(totals);
    for (auto const& ledger : ledgers) ledger->add_to(totals);
    return totals;
  }

  prometheus::Registry registry;
  ServiceSeries service;
  Series<prometheus::Counter> lease_renewals;
  Series<prometheus::Counter> pushes;
  Series<prometheus::Histogram> push_durations;
  Series<prometheus::Counter> pulls;
  Series<prometheus::Histogram> staleness;
  Series<prometheus::Counter> waits;
  Series<prometheus::Counter> nonfinite;
  Series<prometheus::Gauge> shards;
  Series<prometheus::Gauge> shard_bytes;
  Series<prometheus::Gauge> rows;
  Series<prometheus::Counter> rows_created;
  Series<prometheus::Counter> log_records;
  Series<prometheus::Counter> log_bytes;
  Series<prometheus::Histogram> log_syncs;
  Series<prometheus::Counter> log_truncations;
  Series<prometheus::Counter> log_recoveries;
  Series<prometheus::Counter> log_errors;

  std::mutex mutex;  // of the members below
  LinkFamilies links;
  RunLedger own;
  std::vector<std::shared_ptr<RunLedger>> ledgers;
  LedgerTotals closed;
  prometheus::MetricFamily info = make_family(Id::worker_info);
};

WorkerMetrics::WorkerMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged)
    : impl_(std::make_unique<Impl>(build, start_time_seconds, std::move(logged))) {}

WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::identified(std::string_view worker, Locality const& locality) {
  std::scoped_lock lock(impl_->mutex);
  impl_->info.metric.clear();
  add_value(impl_->info, Id::worker_info, {worker, locality.region, locality.zone, locality.rack, locality.host}, 1);
}

void WorkerMetrics::run_begun(Op op) {
  std::scoped_lock lock(impl_->mutex);
  impl_->own.begun(op);
}

void WorkerMetrics::run_finished(FinishedRun const& run) {
  std::scoped_lock lock(impl_->mutex);
  impl_->own.ended(run);
}

std::shared_ptr<RunLedger> WorkerMetrics::open_ledger() {
  auto ledger = std::make_shared<RunLedger>();
  std::scoped_lock lock(impl_->mutex);
  impl_->ledgers.push_back(ledger);
  return ledger;
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

void WorkerMetrics::parameter_rows_created(std::uint64_t rows) {
  impl_->rows_created.with({}).Increment(static_cast<double>(rows));
}

void WorkerMetrics::parameter_logged(std::uint64_t records, std::uint64_t bytes, double seconds) {
  impl_->log_records.with({}).Increment(static_cast<double>(records));
  impl_->log_bytes.with({}).Increment(static_cast<double>(bytes));
  impl_->log_syncs.with({}).Observe(seconds);
}

void WorkerMetrics::parameter_log_truncated() { impl_->log_truncations.with({}).Increment(); }

void WorkerMetrics::parameter_log_recovery(std::string_view result) {
  impl_->log_recoveries.with({result}).Increment();
}

void WorkerMetrics::parameter_log_failed() { impl_->log_errors.with({}).Increment(); }

void WorkerMetrics::refused(std::string_view reason) { impl_->service.refused(reason); }

void WorkerMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

void WorkerMetrics::loop_lag(double seconds) { impl_->service.loop_lag(seconds); }

std::string WorkerMetrics::text(Scrape const& scrape) {
  for (auto const& [role, shards] : {std::pair{"owner", scrape.owned}, {"backup", scrape.backups}}) {
    impl_->shards.with({role}).Set(static_cast<double>(shards.count));
    impl_->shard_bytes.with({role}).Set(static_cast<double>(shards.bytes));
    impl_->rows.with({role}).Set(static_cast<double>(shards.rows));
  }
  Families families;
  families.push_back(single(Id::tensors, static_cast<double>(scrape.tensors)));
  families.push_back(single(Id::tensor_bytes, static_cast<double>(scrape.tensor_bytes)));
  families.push_back(single(Id::tensor_limit, static_cast<double>(scrape.tensor_limit_bytes)));
  families.push_back(single(Id::memory_kept, static_cast<double>(scrape.memory.kept_bytes)));
  families.push_back(single(Id::memory_private, static_cast<double>(scrape.memory.private_bytes)));
  families.push_back(single(Id::error_feedback_bytes, static_cast<double>(scrape.memory.error_feedback_bytes)));
  families.push_back(single(Id::shared_memory_lacks, static_cast<double>(scrape.memory.lacks)));
  auto given_back = make_family(Id::memory_given_back);
  add_value(given_back, Id::memory_given_back, {"idle"}, static_cast<double>(scrape.memory.idle_bytes));
  add_value(given_back, Id::memory_given_back, {"needed"}, static_cast<double>(scrape.memory.needed_bytes));
  families.push_back(std::move(given_back));
  families.push_back(single(Id::parameter_backups_behind, static_cast<double>(scrape.backups_behind)));
  std::ranges::move(gpu_families(scrape.gpus), std::back_inserter(families));
  std::scoped_lock lock(impl_->mutex);
  families.push_back(impl_->info);
  std::ranges::move(impl_->links.collect(scrape.links), std::back_inserter(families));
  std::ranges::move(run_families(impl_->runs()), std::back_inserter(families));
  return impl_->service.text(impl_->registry, scrape.state, std::move(families));
}

}  // namespace chorus::metrics
