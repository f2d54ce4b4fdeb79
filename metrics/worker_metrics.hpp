// The metrics that a worker counts. Every function is thread-safe and costs a lock and a map look-up; a ledger costs
// neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/locality.hpp"
#include "metrics/build/build.hpp"
#include "metrics/log_counter.hpp"
#include "metrics/runs/finished_run.hpp"
#include "metrics/runs/run_ledger.hpp"
#include "metrics/state/gpu_state.hpp"
#include "metrics/state/link_traffic.hpp"
#include "metrics/state/service_state.hpp"

namespace chorus::metrics {

// Host memory for tensors.
struct MemoryState {
  std::uint64_t kept_bytes = 0;
  std::uint64_t private_bytes = 0;
  std::uint64_t lacks = 0;
  std::uint64_t idle_bytes = 0, needed_bytes = 0;  // returned because idle, and because memory was needed
  std::uint64_t error_feedback_bytes = 0;
};

// Values that are read at each scrape instead of being counted.
struct Scrape {
  std::vector<LinkTraffic> links;
  std::vector<GpuState> gpus;
  std::size_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t tensor_limit_bytes = 0;
  MemoryState memory;
  struct Shards {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t rows = 0;  // existing rows of parameters with lazy rows
  };
  Shards owned, backups;
  std::size_t backups_behind = 0;
  ServiceState state;
};

class WorkerMetrics {
 public:
  // Number of peers with series of their own; later peers are counted as peer="other".
  static constexpr std::size_t max_peers = 64;

  // start_time_seconds: wall clock, since 1970. If `logged` is null, lines of the log are not counted.
  WorkerMetrics(Build const& build, double start_time_seconds, std::shared_ptr<LogCounter const> logged = nullptr);
  ~WorkerMetrics();
  WorkerMetrics(WorkerMetrics const&) = delete;
  WorkerMetrics& operator=(WorkerMetrics const&) = delete;

  // Sets the labels of chorus_worker_info. Called again when the worker gets another name.
  void identified(std::string_view worker, Locality const& locality);

  // A run begins; run_finished() follows.
  void run_begun(Op op);
  void run_finished(FinishedRun const& run);
  // Opens a ledger for one caller whose runs are too short for a lock. Its counts stay after the caller releases it.
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

  // Refusals before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

  void loop_lag(double seconds);
  // The values of an http::Exchange; `route` is empty if none matched.
  void request(std::string_view method, std::string_view route, unsigned status, double seconds);

  // Returns the exposition; its Content-Type is `metrics::content_type`. A peer keeps its series, so no counter ever
  // falls.
  [[nodiscard]] std::string text(Scrape const& scrape);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::metrics
