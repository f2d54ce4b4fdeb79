#include "metrics/catalogue.hpp"

#include <algorithm>

namespace chorus::metrics {
namespace {

constexpr bool yes = true;
constexpr bool no = false;

// In the order of Id: asserted below.
constexpr std::array table{
    Metric{Id::build_info,
           "chorus_build_info",
           Type::gauge,
           Buckets::none,
           {"version", "compiler", "boost"},
           yes,
           yes,
           "Always 1; the labels say which build this is."},
    Metric{Id::process_start_time,
           "process_start_time_seconds",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           yes,
           "Start of the process, in seconds since 1970."},
    Metric{Id::collectives,
           "chorus_collectives_total",
           Type::counter,
           Buckets::none,
           {"op", "algorithm", "result"},
           yes,
           yes,
           "Collectives that ended, by result (succeeded, failed, cancelled). A worker counts its own rank's part, the "
           "coordinator counts each collective that it launched once: sum over one job, not over both."},
    Metric{Id::collective_duration,
           "chorus_collective_duration_seconds",
           Type::histogram,
           Buckets::duration_seconds,
           {"op", "algorithm"},
           yes,
           yes,
           "Duration of collectives that succeeded: on a worker from start to end on its rank, on the coordinator from "
           "admission to commit."},
    Metric{
        Id::collective_step_duration,
        "chorus_collective_step_duration_seconds",
        Type::histogram,
        Buckets::step_seconds,
        {"op", "algorithm"},
        yes,
        no,
        "Mean duration of one instruction of a plan: each run that succeeded adds one value, its duration divided by "
        "its number of instructions."},
    Metric{
        Id::collective_bus_bandwidth,
        "chorus_collective_bus_bandwidth_bytes_per_second",
        Type::histogram,
        Buckets::bandwidth_bytes_per_second,
        {"op", "algorithm"},
        yes,
        no,
        "Bytes per second and rank as nccl-tests defines bus bandwidth: payload / seconds * 2(p-1)/p for all_reduce."},
    Metric{Id::collective_payload,
           "chorus_collective_payload_bytes",
           Type::histogram,
           Buckets::payload_bytes,
           {"op"},
           no,
           yes,
           "Size of one rank's tensor in collectives that succeeded."},
    Metric{Id::collective_arrival_skew,
           "chorus_collective_arrival_skew_seconds",
           Type::histogram,
           Buckets::duration_seconds,
           {"op"},
           no,
           yes,
           "Last minus first rank that confirmed the launch of a collective that succeeded."},
    Metric{Id::collective_errors,
           "chorus_collective_errors_total",
           Type::counter,
           Buckets::none,
           {"op", "kind"},
           yes,
           yes,
           "Collectives that failed, by the code of their problem (peer_lost, deadline_exceeded, plan_mismatch, ...)."},
    Metric{Id::link_sent_bytes,
           "chorus_link_sent_bytes_total",
           Type::counter,
           Buckets::none,
           {"peer"},
           yes,
           no,
           "Payload bytes sent to a peer. The first 64 peers have series of their own, all others are peer=\"other\"."},
    Metric{Id::link_received_bytes,
           "chorus_link_received_bytes_total",
           Type::counter,
           Buckets::none,
           {"peer"},
           yes,
           no,
           "Payload bytes received from a peer."},
    Metric{Id::link_busy,
           "chorus_link_busy_seconds_total",
           Type::counter,
           Buckets::none,
           {"peer", "direction"},
           yes,
           no,
           "Time with something queued to a peer (sent) or between the first and last byte of payloads (received): "
           "rate(bytes) / rate(busy) is the speed at which the link really works."},
    Metric{Id::link_connections,
           "chorus_link_connections",
           Type::gauge,
           Buckets::none,
           {"peer", "link"},
           yes,
           no,
           "Open data connections with a peer, through shared memory (shm) or over the network (tcp)."},
    Metric{Id::members,
           "chorus_members",
           Type::gauge,
           Buckets::none,
           {"state"},
           no,
           yes,
           "Workers known to the coordinator, by state (ready, lost)."},
    Metric{Id::membership_changes,
           "chorus_membership_changes_total",
           Type::counter,
           Buckets::none,
           {},
           no,
           yes,
           "New epochs of groups: each change of a group's membership makes one."},
    Metric{Id::lease_renewals,
           "chorus_lease_renewals_total",
           Type::counter,
           Buckets::none,
           {"result"},
           yes,
           no,
           "Attempts to renew this worker's lease, by result (renewed, unreachable, refused, forgotten, fenced)."},
    Metric{Id::tensors, "chorus_tensors", Type::gauge, Buckets::none, {}, yes, no, "Tensors that the worker holds."},
    Metric{Id::tensor_bytes,
           "chorus_tensor_bytes",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           no,
           "Bytes of the tensors' current versions."},
    Metric{Id::parameter_pushes,
           "chorus_parameter_pushes_total",
           Type::counter,
           Buckets::none,
           {"kind", "result"},
           yes,
           no,
           "Pushes to shards that this worker owns, by kind (gradient, rows, value) and result (applied, duplicate, "
           "refused)."},
    Metric{Id::parameter_push_duration,
           "chorus_parameter_push_duration_seconds",
           Type::histogram,
           Buckets::duration_seconds,
           {"kind"},
           yes,
           no,
           "From the arrival of a push at its owner to its answer, of those that were applied: its turn, the backups, "
           "the arithmetic."},
    Metric{Id::parameter_pulls,
           "chorus_parameter_pulls_total",
           Type::counter,
           Buckets::none,
           {"result"},
           yes,
           no,
           "Pulls from shards that this worker owns: values were sent, or were unchanged (304)."},
    Metric{Id::parameter_staleness,
           "chorus_parameter_staleness_clocks",
           Type::histogram,
           Buckets::clocks,
           {},
           yes,
           no,
           "How many clocks the slowest client was behind the reader, of pulls that named a clock."},
    Metric{Id::parameter_waits,
           "chorus_parameter_waits_total",
           Type::counter,
           Buckets::none,
           {"what"},
           yes,
           no,
           "Pulls and pushes that waited for others: for a clock, a version, or a sequence number before theirs."},
    Metric{Id::parameter_nonfinite,
           "chorus_parameter_nonfinite_total",
           Type::counter,
           Buckets::none,
           {},
           yes,
           no,
           "Elements of pushes that were NaN or infinite, where the parameter does not accept them."},
    Metric{Id::parameter_shards,
           "chorus_parameter_shards",
           Type::gauge,
           Buckets::none,
           {"role"},
           yes,
           no,
           "Shards on this worker, by role (owner, backup)."},
    Metric{Id::parameter_bytes,
           "chorus_parameter_shard_bytes",
           Type::gauge,
           Buckets::none,
           {"role"},
           yes,
           no,
           "Bytes of the values of shards on this worker, by role."},
    Metric{Id::parameter_backups_behind,
           "chorus_parameter_backups_behind",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           no,
           "Backups of this worker's shards that do not have everything yet."},
    Metric{Id::checkpoint_duration,
           "chorus_checkpoint_duration_seconds",
           Type::histogram,
           Buckets::duration_seconds,
           {"result"},
           no,
           yes,
           "Duration of checkpoints of parameters, by result (succeeded, failed)."},
    Metric{Id::checkpoint_timestamp,
           "chorus_checkpoint_timestamp_seconds",
           Type::gauge,
           Buckets::none,
           {},
           no,
           yes,
           "When the last checkpoint that succeeded was committed, in seconds since 1970: its age is time() - this."},
    Metric{
        Id::http_request_duration,
        "chorus_http_request_duration_seconds",
        Type::histogram,
        Buckets::http_seconds,
        {"method", "route", "code_class"},
        yes,
        yes,
        "Duration of HTTP requests by route pattern (none: no route matched) and class of the status (2xx, 4xx, ...)."},
    Metric{Id::http_connections,
           "chorus_http_connections",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           yes,
           "Open HTTP connections, data links not included."},
    Metric{Id::auth_enabled,
           "chorus_auth_enabled",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           yes,
           "1 if callers need a token (--auth-tokens), else 0: whoever reaches the service may do everything."},
    Metric{Id::auth_refusals,
           "chorus_auth_refusals_total",
           Type::counter,
           Buckets::none,
           {"reason"},
           yes,
           yes,
           "Requests that were refused before any handler saw them, by reason: no token (missing), one that is unknown "
           "or expired, of another role, too many (rate), by a wrong name (host), from a web page (origin)."},
    Metric{Id::tls_certificate_expiry,
           "chorus_tls_certificate_expiry_timestamp_seconds",
           Type::gauge,
           Buckets::none,
           {},
           yes,
           yes,
           "When the certificate of this service expires, in seconds since 1970; no series without TLS."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].id) != i) return false;
  return true;
}
static_assert(in_order() && table.size() == static_cast<std::size_t>(Id::tls_certificate_expiry) + 1);

std::vector<double> geometric(double first, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= factor) bounds.push_back(bound);
  return bounds;
}

std::string services(Metric const& metric) {
  if (metric.on_worker && metric.on_coordinator) return "both";
  return metric.on_worker ? "worker" : "coordinator";
}

}  // namespace

std::span<std::string_view const> Metric::labels() const {
  auto const end = std::find(label_names.begin(), label_names.end(), std::string_view());
  return {label_names.begin(), end};
}

std::span<Metric const> catalogue() { return table; }

Metric const& describe(Id id) { return table[static_cast<std::size_t>(id)]; }

std::string_view name(Type type) {
  switch (type) {
    case Type::counter:
      return "counter";
    case Type::gauge:
      return "gauge";
    case Type::histogram:
      return "histogram";
  }
  return "";
}

std::vector<double> bounds(Buckets buckets) {
  switch (buckets) {
    case Buckets::none:
      return {};
    case Buckets::duration_seconds:
      return geometric(1e-4, 2, 21);
    case Buckets::step_seconds:
      return geometric(1e-6, 4, 13);
    case Buckets::http_seconds:
      return {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10};
    case Buckets::payload_bytes:
      return geometric(1024, 4, 12);
    case Buckets::bandwidth_bytes_per_second:
      return geometric(1e7, 2, 16);
    case Buckets::clocks:
      return {0, 1, 2, 4, 8, 16, 32, 64};
  }
  return {};
}

std::string to_markdown() {
  std::string page =
      "# Metrics\n\n"
      "Coordinator and workers export Prometheus metrics (text format 0.0.4) at `GET /metrics` on their own port. "
      "This\n"
      "page is made from the table in `metrics/catalogue.cpp`; a test compares the two.\n\n"
      "Labels take values from closed sets. A family never has more than 512 series: beyond that, new label values "
      "are\n"
      "folded into `other`. Peers have series of their own up to 64, later ones are `peer=\"other\"`.\n\n"
      "| metric | type | labels | exported by | meaning |\n"
      "|---|---|---|---|---|\n";
  for (auto const& metric : table) {
    std::string labels;
    for (auto label : metric.labels()) {
      if (!labels.empty()) labels += ", ";
      labels += '`' + std::string(label) + '`';
    }
    page += "| `" + std::string(metric.name) + "` | " + std::string(name(metric.type)) + " | " + labels + " | " +
            services(metric) + " | " + std::string(metric.help) + " |\n";
  }
  return page;
}

}  // namespace chorus::metrics
