// Every metric that Chorus exports, in one table: the code, docs/metrics.md and the tests are made from it.
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
#include <vector>

namespace chorus::metrics {

enum class Id : std::uint8_t {
  build_info,
  process_start_time,
  collectives,
  collective_duration,
  collective_step_duration,
  collective_bus_bandwidth,
  collective_payload,
  collective_arrival_skew,
  collective_errors,
  link_sent_bytes,
  link_received_bytes,
  link_busy,
  link_connections,
  members,
  membership_changes,
  lease_renewals,
  tensors,
  tensor_bytes,
  parameter_pushes,
  parameter_push_duration,
  parameter_pulls,
  parameter_staleness,
  parameter_waits,
  parameter_nonfinite,
  parameter_shards,
  parameter_bytes,
  parameter_backups_behind,
  checkpoint_duration,
  checkpoint_timestamp,
  http_request_duration,
  http_connections,
  auth_enabled,
  auth_refusals,
  tls_certificate_expiry,
};

enum class Type : std::uint8_t { counter, gauge, histogram };

// Upper bounds of a histogram's buckets; a last one without bound is implied.
enum class Buckets : std::uint8_t {
  none,
  duration_seconds,            // 0.1 ms * 2^k, k = 0..20
  step_seconds,                // 1 us * 4^k, k = 0..12
  http_seconds,                // 5 ms .. 10 s
  payload_bytes,               // 1 KiB * 4^k, k = 0..11
  bandwidth_bytes_per_second,  // 10 MB/s * 2^k, k = 0..15
  clocks,                      // 0, 1, 2, 4 .. 64
};

inline constexpr std::size_t max_labels = 3;

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

[[nodiscard]] std::span<Metric const> catalogue();
[[nodiscard]] Metric const& describe(Id id);
[[nodiscard]] std::string_view name(Type type);
[[nodiscard]] std::vector<double> bounds(Buckets buckets);

// The page docs/metrics.md, made of the table.
[[nodiscard]] std::string to_markdown();

}  // namespace chorus::metrics
