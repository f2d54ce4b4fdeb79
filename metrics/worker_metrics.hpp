// What a worker counts. Every verb is thread-safe and costs a lock and a map look-up; a ledger costs neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/locality.hpp"
#include "metrics/build.hpp"
#include "metrics/finished_run.hpp"
#include "metrics/gpu_state.hpp"
#include "metrics/link_traffic.hpp"
#include "metrics/log_counter.hpp"
#include "metrics/run_ledger.hpp"
#include "metrics/service_state.hpp"

namespace chorus::metrics {

// What is not counted but read when somebody scrapes.
struct Scrape {
  std::vector<LinkTraffic> links;
  std::vector<GpuState> gpus;
  std::size_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t tensor_limit_bytes = 0;
  struct Shards {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t rows = 0;  // that exist, where they are created lazily
  };
  Shards owned, backups;
  std::size_t backups_behind = 0;
  ServiceState state;
};

class WorkerMetrics {
 public:
  // How many peers have series of their own; later ones are folded into peer="other".
  static constexpr std::size_t max_peers = 64;

  // start_time_seconds: wall clock, since 1970. `logged` may be null: then lines are not counted.
  WorkerMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged = nullptr);
  ~WorkerMetrics();
  WorkerMetrics(WorkerMetrics const&) = delete;
  WorkerMetrics& operator=(WorkerMetrics const&) = delete;

  // Who this is, and where; again when it has another name.
  void identified(std::string_view worker, Locality const& locality);

  // A run begins; it is run_finished() later.
  void run_begun(Op op);
  void run_finished(FinishedRun const& run);
  // For callers whose calls are too short for a lock: a ledger of their own. It counts as long as it is held, and what
  // it counted stays.
  [[nodiscard]] std::shared_ptr<RunLedger> open_ledger();

  void lease_renewal(std::string_view result);  // renewed, unreachable, refused, forgotten, fenced

  // kind: gradient, rows, value; result: applied, duplicate, refused.
  void parameter_pushed(std::string_view kind, std::string_view result, double seconds);
  void parameter_pulled(std::string_view result);  // sent, unchanged
  void parameter_staleness(std::uint64_t clocks);
  void parameter_waited(std::string_view what);  // pull, push
  void parameter_nonfinite(std::uint64_t elements);
  void parameter_rows_created(std::uint64_t rows);
  void parameter_logged(std::uint64_t records, std::uint64_t bytes, double seconds);
  void parameter_log_truncated();
  void parameter_log_recovery(std::string_view result);  // recovered, refused
  void parameter_log_failed();

  // Before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

  void loop_lag(double seconds);
  // Of http::Exchange, as plain values; `route` "" when none matched.
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // The exposition, Content-Type `metrics::content_type`. Peers keep their series once they have one, so that no
  // counter ever falls.
  [[nodiscard]] std::string text(Scrape const& scrape);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
