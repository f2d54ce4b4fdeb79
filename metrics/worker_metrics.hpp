// What a worker counts. Every verb is thread-safe and costs a map look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/op.hpp"
#include "metrics/build.hpp"

namespace chorus::metrics {

// How one run ended on this rank.
struct FinishedRun {
  Op op = Op::all_reduce;
  std::string_view algorithm;
  std::string_view result;  // succeeded, failed, cancelled
  std::string_view kind;    // the code of the problem, unless it succeeded
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // of this rank's tensor
  double seconds = 0;
  std::uint32_t steps = 0;  // instructions run
};

// Traffic with one peer since the start of the process.
struct LinkTraffic {
  std::string peer;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;
  double receive_busy_seconds = 0;
  std::uint32_t connections = 0;
  std::string link = "tcp";  // "shm", "tcp", or "none" while there is no connection
};

// What is not counted but read when somebody scrapes.
struct Scrape {
  std::vector<LinkTraffic> links;
  std::size_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::size_t http_connections = 0;
  struct Shards {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  Shards owned, backups;
  std::size_t backups_behind = 0;
};

class WorkerMetrics {
 public:
  // How many peers have series of their own; later ones are folded into peer="other".
  static constexpr std::size_t max_peers = 64;

  // start_time_seconds: wall clock, since 1970.
  WorkerMetrics(Build const& build, double start_time_seconds);
  ~WorkerMetrics();
  WorkerMetrics(WorkerMetrics const&) = delete;
  WorkerMetrics& operator=(WorkerMetrics const&) = delete;

  void run_finished(FinishedRun const& run);
  void lease_renewal(std::string_view result);  // renewed, unreachable, refused, forgotten, fenced

  // kind: gradient, rows, value; result: applied, duplicate, refused.
  void parameter_pushed(std::string_view kind, std::string_view result, double seconds);
  void parameter_pulled(std::string_view result);  // sent, unchanged
  void parameter_staleness(std::uint64_t clocks);
  void parameter_waited(std::string_view what);  // pull, push
  void parameter_nonfinite(std::uint64_t elements);

  // When something of it may have changed, such as before a scrape; see ServiceSeries.
  void security(bool authenticates, double certificate_expiry_seconds);
  // Before any handler: missing, unknown, expired, role, rate, host, origin.
  void refused(std::string_view reason);

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
