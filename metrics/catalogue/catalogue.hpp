// The table of every metric that Chorus exports; the series, docs/reference/metrics.md and the tests are made from it.
//
// Rules: base units, the unit last, counters end in _total. A label takes values from a closed set or is bounded by
// `Series`; ids of collectives, names of tensors, users, sizes and error texts are never labels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chorus::metrics {

enum class Id : std::uint8_t {
  build_info,
  ready,
  draining,
  process_start_time,
  process_cpu,
  process_resident_memory,
  process_virtual_memory,
  memory_limit,
  memory_used,
  process_open_fds,
  process_max_fds,
  process_threads,
  log_messages,
  metrics_folded,
  http_request_duration,
  http_connections,
  http_in_flight,
  http_rejected,
  event_loop_lag,
  disk_wait,
  collectives,
  collective_duration,
  collective_step_duration,
  collective_bus_bandwidth,
  collective_algorithm_bandwidth,
  collective_wait,
  collective_payload,
  collective_arrival_skew,
  collective_straggler,
  collectives_active,
  collectives_queued,
  collective_queue_wait,
  collectives_stalled,
  collective_errors,
  plans,
  plan_error,
  reduce_bytes,
  reduce_seconds,
  compressed_bytes,
  compressed_wire_bytes,
  gpu_busy,
  gpu_copied_bytes,
  gpu_kernels,
  gpu_stepped_bytes,
  gpu_arena,
  gpu_arena_used,
  gpu_pinned,
  gpu_pinned_limit,
  gpu_lost,
  link_sent_bytes,
  link_received_bytes,
  link_busy,
  link_connections,
  link_round_trip,
  link_round_trip_last,
  link_retries,
  link_errors,
  worker_info,
  members,
  group_members,
  group_epoch,
  membership_changes,
  worker_takeovers,
  heartbeat,
  lease,
  lease_renewals,
  journal_writes,
  journal_errors,
  journal_size,
  journal_unwritten,
  journal_write_duration,
  unclean_shutdown,
  coordinator_leading,
  leadership_term,
  etcd_requests,
  events_published,
  event_streams,
  events_dropped,
  tensors,
  tensor_bytes,
  tensor_limit,
  memory_kept,
  memory_private,
  error_feedback_bytes,
  memory_given_back,
  shared_memory_lacks,
  parameter_pushes,
  parameter_push_duration,
  parameter_pulls,
  parameter_staleness,
  parameter_waits,
  parameter_nonfinite,
  parameter_shards,
  parameter_bytes,
  parameter_backups_behind,
  parameter_rows,
  parameter_rows_created,
  parameter_log_records,
  parameter_log_bytes,
  parameter_log_sync_duration,
  parameter_log_truncations,
  parameter_log_recoveries,
  parameter_log_errors,
  checkpoint_duration,
  checkpoint_timestamp,
  checkpoint_schedule_timestamp,
  checkpoint_interval,
  parameters,
  auth_enabled,
  auth_refusals,
  tls_certificate_expiry,
};

enum class Type : std::uint8_t { counter, gauge, histogram };

// Upper bounds of a histogram's buckets; the last bucket, without a bound, is implied.
enum class Buckets : std::uint8_t {
  none,
  duration_seconds,            // 0.1 ms * 2^k, k = 0..20
  step_seconds,                // 1 us * 4^k, k = 0..12
  http_seconds,                // 5 ms .. 10 s
  lag_seconds,                 // 0.1 ms * 4^k, k = 0..8
  round_trip_seconds,          // 10 us * 2^k, k = 0..15
  ratio,                       // 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10
  payload_bytes,               // 1 KiB * 4^k, k = 0..11
  bandwidth_bytes_per_second,  // 10 MB/s * 2^k, k = 0..15
  clocks,                      // 0, 1, 2, 4 .. 64
};

inline constexpr std::size_t max_labels = 7;

// Size classes of vectors with their greatest sizes: the closed set of values of the label "size".
inline constexpr std::array<std::pair<std::uint64_t, std::string_view>, 7> size_classes{{{4u << 10, "le_4KiB"},
                                                                                         {64u << 10, "le_64KiB"},
                                                                                         {1u << 20, "le_1MiB"},
                                                                                         {16u << 20, "le_16MiB"},
                                                                                         {64u << 20, "le_64MiB"},
                                                                                         {256u << 20, "le_256MiB"},
                                                                                         {1u << 30, "le_1GiB"}}};
inline constexpr std::string_view greatest_size_class = "gt_1GiB";
[[nodiscard]] std::string_view size_class(std::uint64_t bytes);

struct Metric {
  Id id;
  std::string_view name;
  Type type;
  Buckets buckets;
  std::array<std::string_view, max_labels> label_names;  // unused ones last and empty
  bool on_worker;
  bool on_coordinator;
  std::string_view help;

  [[nodiscard]] std::span<std::string_view const> labels() const;
};

[[nodiscard]] std::span<Metric const> catalogue();  // in the order of Id
[[nodiscard]] Metric const& describe(Id id);
[[nodiscard]] std::string_view name(Type type);
[[nodiscard]] std::vector<double> bounds(Buckets buckets);

// Returns the page docs/reference/metrics.md.
[[nodiscard]] std::string to_markdown();

}  // namespace chorus::metrics
