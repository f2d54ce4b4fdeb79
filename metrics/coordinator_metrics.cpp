#include "metrics/coordinator_metrics.hpp"

#include <cmath>

#include "collectives/core/op.hpp"
#include "metrics/families/coordinator_families.hpp"
#include "metrics/service_series.hpp"

namespace chorus::metrics {

class CoordinatorMetrics::Impl {
 public:
  Impl(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged)
      : service(registry, build, start_time_seconds, std::move(logged)),
        collectives(registry, Id::collectives),
        durations(registry, Id::collective_duration),
        payloads(registry, Id::collective_payload),
        skews(registry, Id::collective_arrival_skew),
        queue_waits(registry, Id::collective_queue_wait),
        stragglers(registry, Id::collective_straggler, max_workers),
        stalled(registry, Id::collectives_stalled),
        errors(registry, Id::collective_errors, Series<prometheus::Counter>::default_limit + all_ops.size()),
        plans(registry, Id::plans),
        plan_errors(registry, Id::plan_error),
        members(registry, Id::members),
        membership_changes(registry, Id::membership_changes),
        worker_takeovers(registry, Id::worker_takeovers),
        checkpoint_durations(registry, Id::checkpoint_duration),
        checkpoint_timestamp(registry, Id::checkpoint_timestamp),
        schedule_timestamp(registry, Id::checkpoint_schedule_timestamp),
        journal_writes(registry, Id::journal_write_duration) {
    members.with({"ready"}).Set(0);
    members.with({"lost"}).Set(0);
    for (auto reason : {"request", "members", "trouble"}) membership_changes.with({reason});
    worker_takeovers.with({});
    for (auto result : {"succeeded", "failed"}) checkpoint_durations.with({result});
    // Alerts ask how much these rise, which is nothing for a series that begins with its first event.
    for (auto op : all_ops) errors.with({name(op), "digest_mismatch"});
    for (auto op : all_ops) stalled.with({name(op)}).Set(0);
  }

  prometheus::Registry registry;
  ServiceSeries service;
  Series<prometheus::Counter> collectives;
  Series<prometheus::Histogram> durations;
  Series<prometheus::Histogram> payloads;
  Series<prometheus::Histogram> skews;
  Series<prometheus::Histogram> queue_waits;
  Series<prometheus::Counter> stragglers;
  Series<prometheus::Gauge> stalled;
  Series<prometheus::Counter> errors;
  Series<prometheus::Counter> plans;
  Series<prometheus::Histogram> plan_errors;
  Series<prometheus::Gauge> members;
  Series<prometheus::Counter> membership_changes;
  Series<prometheus::Counter> worker_takeovers;
  Series<prometheus::Histogram> checkpoint_durations;
  Series<prometheus::Gauge> checkpoint_timestamp;
  Series<prometheus::Gauge> schedule_timestamp;
  Series<prometheus::Histogram> journal_writes;
};

CoordinatorMetrics::CoordinatorMetrics(Build const& build, double start_time_seconds,
                                       std::shared_ptr<LogCounter const> logged)
    : impl_(std::make_unique<Impl>(build, start_time_seconds, std::move(logged))) {}

CoordinatorMetrics::~CoordinatorMetrics() = default;

void CoordinatorMetrics::collective_planned(std::string_view op, std::string_view algorithm, std::string_view choice) {
  impl_->plans.with({op, algorithm, choice}).Increment();
}

void CoordinatorMetrics::collective_launched(std::string_view op, double seconds) {
  impl_->queue_waits.with({op}).Observe(seconds);
}

void CoordinatorMetrics::collective_finished(FinishedCollective const& ended) {
  impl_->collectives.with({ended.op, ended.algorithm, ended.result}).Increment();
  if (ended.result != "succeeded") return;
  impl_->durations.with({ended.op, ended.algorithm, size_class(ended.bytes)}).Observe(ended.seconds);
  impl_->payloads.with({ended.op}).Observe(static_cast<double>(ended.bytes));
  impl_->skews.with({ended.op}).Observe(ended.skew_seconds);
  auto const measured = ended.slowest_rank_seconds;
  if (measured > 0 && ended.predicted_seconds > 0)
    impl_->plan_errors.with({ended.op}).Observe(std::abs(measured - ended.predicted_seconds) / measured);
}

void CoordinatorMetrics::collective_failed(std::string_view op, std::string_view kind) {
  impl_->errors.with({op, kind}).Increment();
}

void CoordinatorMetrics::straggled(std::string_view worker) { impl_->stragglers.with({worker}).Increment(); }

void CoordinatorMetrics::collectives_stalled(std::string_view op, std::size_t count) {
  impl_->stalled.with({op}).Set(static_cast<double>(count));
}

void CoordinatorMetrics::members(std::size_t ready, std::size_t lost) {
  impl_->members.with({"ready"}).Set(static_cast<double>(ready));
  impl_->members.with({"lost"}).Set(static_cast<double>(lost));
}

void CoordinatorMetrics::epoch_changed(std::string_view reason) {
  impl_->membership_changes.with({reason}).Increment();
}

void CoordinatorMetrics::taken_over() { impl_->worker_takeovers.with({}).Increment(); }

void CoordinatorMetrics::checkpoint_ended(std::string_view result, double seconds, double wall_seconds) {
  impl_->checkpoint_durations.with({result}).Observe(seconds);
  if (result == "succeeded") impl_->checkpoint_timestamp.with({}).Set(wall_seconds);
}

void CoordinatorMetrics::checkpoint_needless(double wall_seconds) {
  impl_->checkpoint_timestamp.with({}).Set(wall_seconds);
}

void CoordinatorMetrics::checkpoints_begin(double wall_seconds) {
  impl_->schedule_timestamp.with({}).Set(wall_seconds);
}

void CoordinatorMetrics::journal_written(double seconds) { impl_->journal_writes.with({}).Observe(seconds); }

void CoordinatorMetrics::refused(std::string_view reason) { impl_->service.refused(reason); }
void CoordinatorMetrics::loop_lag(double seconds) { impl_->service.loop_lag(seconds); }

void CoordinatorMetrics::request(std::string_view method, std::string_view route, unsigned status, double seconds) {
  impl_->service.request(method, route, status, seconds);
}

std::string CoordinatorMetrics::text(CoordinatorScrape const& scrape) const {
  return impl_->service.text(impl_->registry, scrape.state, coordinator_families(scrape), cut_families(scrape));
}

}  // namespace chorus::metrics
