#include "metrics/catalogue/catalogue.hpp"

#include <algorithm>
#include <initializer_list>

namespace chorus::metrics {
namespace {

enum class Where : std::uint8_t { worker, coordinator, both };
using enum Where;

struct Labels {
  std::array<std::string_view, max_labels> names{};
  consteval Labels(std::initializer_list<std::string_view> labels) {
    std::size_t i = 0;
    for (auto label : labels) names[i++] = label;
  }
};

consteval Metric histogram(Id id, std::string_view name, Buckets buckets, Labels labels, Where where,
                           std::string_view help) {
  return {id, name, Type::histogram, buckets, labels.names, where != coordinator, where != worker, help};
}
consteval Metric gauge(Id id, std::string_view name, Labels labels, Where where, std::string_view help) {
  return {id, name, Type::gauge, Buckets::none, labels.names, where != coordinator, where != worker, help};
}
consteval Metric counter(Id id, std::string_view name, Labels labels, Where where, std::string_view help) {
  return {id, name, Type::counter, Buckets::none, labels.names, where != coordinator, where != worker, help};
}

constexpr std::array table{
    // Of both services
    gauge(Id::build_info, "chorus_build_info",
          {"version", "commit", "compiler", "boost", "cuda", "tls", "plan_generator"}, both,
          "Always 1; the labels say which build this is."),
    gauge(Id::ready, "chorus_ready", {}, both, "1 if the service is ready, as GET /readyz says; otherwise 0."),
    gauge(Id::draining, "chorus_draining", {}, both,
          "1 from when the service was told to stop until it has stopped; otherwise 0."),
    gauge(Id::process_start_time, "process_start_time_seconds", {}, both,
          "Start of the process, in seconds since 1970."),
    counter(Id::process_cpu, "process_cpu_seconds_total", {}, both,
            "CPU time of the process, of user and system together."),
    gauge(Id::process_resident_memory, "process_resident_memory_bytes", {}, both,
          "Memory of the process that is in RAM, shared memory included."),
    gauge(Id::process_virtual_memory, "process_virtual_memory_bytes", {}, both,
          "Address space of the process: far more than what it uses, as arenas reserve addresses."),
    gauge(
        Id::memory_limit, "chorus_memory_limit_bytes", {}, both,
        "How much memory the process may use: the least limit of its control groups and of those that they lie in, or "
        "the machine's memory."),
    gauge(Id::memory_used, "chorus_memory_used_bytes", {}, both,
          "How much of that is taken, by this process and by all others in the control group with the limit, or on the "
          "machine, without what the kernel gives back by itself. Memory that is mapped counts where it was written."),
    gauge(Id::process_open_fds, "process_open_fds", {}, both, "Open file descriptors."),
    gauge(Id::process_max_fds, "process_max_fds", {}, both, "How many file descriptors may be open."),
    gauge(Id::process_threads, "process_threads", {}, both, "Threads of the process."),
    counter(Id::log_messages, "chorus_log_messages_total", {"level"}, both,
            "Lines that were logged, by level (trace, debug, info, warning, error, critical)."),
    gauge(Id::metrics_folded, "chorus_metrics_folded_families", {}, both,
          "Families of this service that do not show everything: label values beyond the limit are folded into "
          "\"other\", or groups and workers beyond the first ones are left out."),
    histogram(
        Id::http_request_duration, "chorus_http_request_duration_seconds", Buckets::http_seconds,
        {"method", "route", "code_class"}, both,
        "Duration of HTTP requests by route pattern (none: no route matched) and class of the status (2xx, 4xx, ...)."),
    gauge(Id::http_connections, "chorus_http_connections", {}, both, "Open HTTP connections, data links not included."),
    gauge(Id::http_in_flight, "chorus_http_requests_in_flight", {}, both,
          "HTTP requests that were read and are not answered yet, those that wait for something included."),
    counter(Id::http_rejected, "chorus_http_rejected_total", {"reason"}, both,
            "Requests that no handler saw, by reason: overload (too many connections), slow_header, header_too_large, "
            "malformed, not_found, method_not_allowed, other."),
    histogram(Id::event_loop_lag, "chorus_event_loop_lag_seconds", Buckets::lag_seconds, {}, both,
              "How much later than asked a timer of the control thread fired, twenty times a second: what every "
              "request waits at least, and every heartbeat."),
    gauge(Id::disk_wait, "chorus_disk_wait_seconds", {"disk"}, both,
          "How long the call to a disk that is under way and has waited longest has waited, by what is on the disk: "
          "checkpoints and logs on a worker, the journal on a coordinator that has one. 0: none is under way."),

    // Collectives
    counter(Id::collectives, "chorus_collectives_total", {"op", "algorithm", "result"}, both,
            "Collectives that ended, by result (succeeded, failed, cancelled). A worker counts its own rank's part, "
            "the coordinator counts each collective that it launched once: sum over one job, not over both."),
    histogram(Id::collective_duration, "chorus_collective_duration_seconds", Buckets::duration_seconds,
              {"op", "algorithm", "size"}, both,
              "Duration of collectives that succeeded: on a worker from start to end on its rank, on the coordinator "
              "from admission to commit. By size of the vector: le_4KiB, le_64KiB, le_1MiB, le_16MiB, le_64MiB, "
              "le_256MiB, le_1GiB, gt_1GiB."),
    histogram(Id::collective_step_duration, "chorus_collective_step_duration_seconds", Buckets::step_seconds,
              {"op", "algorithm"}, worker,
              "Mean duration of one instruction of a plan: each run that succeeded adds one value, its duration "
              "divided by its number of instructions."),
    histogram(
        Id::collective_bus_bandwidth, "chorus_collective_bus_bandwidth_bytes_per_second",
        Buckets::bandwidth_bytes_per_second, {"op", "algorithm", "size"}, worker,
        "Bytes per second and rank as nccl-tests defines bus bandwidth: payload / seconds * 2(p-1)/p for all_reduce."),
    histogram(Id::collective_algorithm_bandwidth, "chorus_collective_algorithm_bandwidth_bytes_per_second",
              Buckets::bandwidth_bytes_per_second, {"op", "algorithm", "size"}, worker,
              "Payload / seconds, as nccl-tests defines algorithm bandwidth."),
    counter(
        Id::collective_wait, "chorus_collective_wait_seconds_total", {"op"}, worker,
        "Time in which runs that succeeded had something to send or receive that waited for its peer alone. Who waits "
        "least is the one that the others wait for. Calls through shared memory do not tell."),
    histogram(Id::collective_payload, "chorus_collective_payload_bytes", Buckets::payload_bytes, {"op"}, coordinator,
              "Size of one rank's tensor in collectives that succeeded."),
    histogram(Id::collective_arrival_skew, "chorus_collective_arrival_skew_seconds", Buckets::duration_seconds, {"op"},
              coordinator, "Last minus first rank that began, of collectives that succeeded."),
    counter(
        Id::collective_straggler, "chorus_collective_straggler_total", {"worker"}, coordinator,
        "Collectives that succeeded and to which this worker came late: later than the middle member by 5 ms and half "
        "of "
        "the time that one was in it. The first 64 workers have series of their own, all others are worker=\"other\"."),
    gauge(Id::collectives_active, "chorus_collectives_active", {"op"}, both,
          "Collectives that run: on a worker those of its own rank, on the coordinator those that it has launched."),
    gauge(Id::collectives_queued, "chorus_collectives_queued", {"op"}, coordinator,
          "Collectives that were asked for and are not launched yet: they wait for another one on the same tensor, for "
          "their group, or for their plan."),
    histogram(Id::collective_queue_wait, "chorus_collective_queue_wait_seconds", Buckets::duration_seconds, {"op"},
              coordinator, "From when a collective was asked for to its launch, of those that were launched."),
    gauge(Id::collectives_stalled, "chorus_collectives_stalled", {"op"}, coordinator,
          "Collectives that run and in which nothing moves: somebody is waited for."),
    counter(
        Id::collective_errors, "chorus_collective_errors_total", {"op", "kind"}, both,
        "Collectives that failed, by the code of their problem (peer_lost, deadline_exceeded, plan_mismatch, ...)."),
    counter(Id::plans, "chorus_plans_total", {"op", "algorithm", "choice"}, coordinator,
            "Plans of collectives that the coordinator made, by who chose the algorithm: the model, or the request."),
    histogram(Id::plan_error, "chorus_plan_predicted_error_ratio", Buckets::ratio, {"op"}, coordinator,
              "By how much the prediction of a collective that succeeded was wrong: |measured - predicted| / measured, "
              "where measured is the slowest rank's duration."),
    counter(Id::reduce_bytes, "chorus_reduce_bytes_total", {"device", "dtype"}, worker,
            "Bytes that were reduced into results, in pieces of 64 KiB and more."),
    counter(Id::reduce_seconds, "chorus_reduce_busy_seconds_total", {"device", "dtype"}, worker,
            "Time that those reductions took: rate(bytes) / rate(busy) is their speed."),
    counter(Id::compressed_bytes, "chorus_compressed_bytes_total", {"format"}, worker,
            "Bytes of the vectors of compressed collectives that succeeded, by format of their codes."),
    counter(Id::compressed_wire_bytes, "chorus_compressed_wire_bytes_total", {"format"}, worker,
            "Bytes of the codes of those vectors: rate(bytes) / rate(wire bytes) is the ratio of compression."),

    // GPUs
    counter(Id::gpu_busy, "chorus_gpu_busy_seconds_total", {"device", "queue"}, worker,
            "Time that a GPU worked for this worker, as it measured it, by queue: in (copies from the host's memory), "
            "compute (kernels, and copies within the GPU), out (copies to the host's memory)."),
    counter(
        Id::gpu_copied_bytes, "chorus_gpu_copied_bytes_total", {"device", "direction"}, worker,
        "Bytes copied between a GPU's memory and the host's (in, out), read or written where they lay in the memory of "
        "another GPU of this worker, or of another worker on the host (peer), or of its tensors that NCCL summed with "
        "those of other GPUs or passed on (nccl)."),
    counter(Id::gpu_kernels, "chorus_gpu_kernels_total", {"device"}, worker, "Kernels that a GPU has run."),
    counter(Id::gpu_stepped_bytes, "chorus_gpu_stepped_bytes_total", {"device"}, worker,
            "Bytes of gradients by which optimizers of parameters stepped on a GPU."),
    gauge(Id::gpu_arena, "chorus_gpu_arena_bytes", {"device"}, worker,
          "How much of a GPU's memory the worker has taken for tensors (--gpu-memory-bytes); 0 before the first one."),
    gauge(Id::gpu_arena_used, "chorus_gpu_arena_used_bytes", {"device"}, worker,
          "How much of that tensors and results take now."),
    gauge(Id::gpu_pinned, "chorus_gpu_pinned_bytes", {"device"}, worker,
          "Host memory that is pinned for copies from and to a GPU, in use or kept for the next one."),
    gauge(Id::gpu_pinned_limit, "chorus_gpu_pinned_limit_bytes", {"device"}, worker,
          "How much of it there may be (--gpu-pinned-bytes)."),
    gauge(Id::gpu_lost, "chorus_gpu_lost", {"device"}, worker,
          "1 if nothing works on a GPU any more, as GET /readyz says; otherwise 0."),

    // Links
    counter(
        Id::link_sent_bytes, "chorus_link_sent_bytes_total", {"peer"}, worker,
        "Payload bytes sent to a peer. The first 64 peers have series of their own, all others are peer=\"other\"."),
    counter(Id::link_received_bytes, "chorus_link_received_bytes_total", {"peer"}, worker,
            "Payload bytes received from a peer."),
    counter(Id::link_busy, "chorus_link_busy_seconds_total", {"peer", "direction"}, worker,
            "Time with something queued to a peer (sent) or between the first and last byte of payloads (received): "
            "rate(bytes) / rate(busy) is the speed at which the link really works."),
    gauge(Id::link_connections, "chorus_link_connections", {"peer", "link"}, worker,
          "Open data connections with a peer, through shared memory (shm) or over the network (tcp)."),
    histogram(Id::link_round_trip, "chorus_link_rtt_seconds", Buckets::round_trip_seconds, {}, worker,
              "From a question to a peer on a data link to its answer. Runs that wait for longer than 12 ms ask; what "
              "the peer's data thread does meanwhile counts."),
    gauge(Id::link_round_trip_last, "chorus_link_rtt_last_seconds", {"peer"}, worker, "The last such time."),
    counter(Id::link_retries, "chorus_link_retries_total", {"peer"}, worker,
            "Connections to a peer that were opened, or tried, after the first one."),
    counter(Id::link_errors, "chorus_link_errors_total", {"peer", "kind"}, worker,
            "Data connections that ended otherwise than by a stop, by kind: unreachable (none came about), closed (the "
            "peer has gone, or closed it), refused (by the peer, or as it was replaced), malformed (what came was not "
            "understood), corrupt (a checksum showed that bytes were changed on the way)."),

    // Membership
    gauge(Id::worker_info, "chorus_worker_info", {"worker", "region", "zone", "rack", "host"}, worker,
          "Always 1; the labels say which worker this is and where it stands: join on (job, instance)."),
    gauge(Id::members, "chorus_members", {"state"}, coordinator,
          "Workers known to the coordinator, by state (ready, lost)."),
    gauge(Id::group_members, "chorus_group_members", {"group", "state"}, coordinator,
          "Members of a group: how many were asked for (expected) and how many of them are there (ready). The first 64 "
          "groups."),
    gauge(Id::group_epoch, "chorus_group_epoch", {"group"}, coordinator, "Epoch of a group. The first 64 groups."),
    counter(Id::membership_changes, "chorus_membership_changes_total", {"reason"}, coordinator,
            "New epochs of groups, by reason: request (somebody asked for it), members (one was lost or came back), "
            "trouble (a call failed)."),
    counter(Id::worker_takeovers, "chorus_worker_takeovers_total", {}, coordinator,
            "How often a process took a worker's name from another one that had a lease: again and again where two "
            "supervisors start the same worker."),
    gauge(Id::heartbeat, "chorus_heartbeat_last_timestamp_seconds", {"worker"}, coordinator,
          "When a worker was last heard of, in seconds since 1970: its silence, when it was asked for, is "
          "timestamp(this) - "
          "this. The first 256 workers."),
    gauge(Id::lease, "chorus_lease_seconds", {}, coordinator, "How long a worker may be silent before it is lost."),
    counter(Id::lease_renewals, "chorus_lease_renewals_total", {"result"}, worker,
            "Attempts to renew this worker's lease, by result (renewed, unreachable, refused, forgotten, fenced)."),

    // Journal and events
    counter(Id::journal_writes, "chorus_journal_writes_total", {}, coordinator,
            "Transactions written to the journal, each durable when it was counted. Families of the journal are there "
            "if --journal or --etcd is."),
    counter(Id::journal_errors, "chorus_journal_errors_total", {}, coordinator,
            "Attempts to write the journal that failed."),
    gauge(Id::journal_size, "chorus_journal_size_bytes", {}, coordinator,
          "Size of the journal's files, or of etcd's database."),
    gauge(Id::journal_unwritten, "chorus_journal_unwritten_rows", {}, coordinator,
          "Changes that were noted and are not on the disk yet."),
    histogram(Id::journal_write_duration, "chorus_journal_write_duration_seconds", Buckets::duration_seconds, {},
              coordinator,
              "Duration of writes to the journal that succeeded, from their begin until they were durable: on a disk "
              "or in etcd."),
    gauge(Id::unclean_shutdown, "chorus_previous_shutdown_unclean", {}, coordinator,
          "1 if the coordinator's last life, as the journal tells, ended without a goodbye; otherwise 0."),
    gauge(Id::coordinator_leading, "chorus_coordinator_leading", {}, coordinator,
          "1 if this coordinator leads, 0 if it is a standby. This family and the next two are there if --etcd is; a "
          "standby exports them and the families of the process, HTTP and the log."),
    gauge(Id::leadership_term, "chorus_leadership_term", {}, coordinator,
          "Term of the leader that this coordinator knows of: revision of etcd at which the leader's key was made. It "
          "rises with each change of the leader. No series while no leader is known."),
    counter(Id::etcd_requests, "chorus_etcd_requests_total", {"endpoint", "result"}, coordinator,
            "Requests to etcd by endpoint and result: answered, unreachable (no answer in time, or no quorum), refused "
            "(user, certificate or request), malformed (no etcd answers there)."),
    counter(Id::events_published, "chorus_events_published_total", {}, coordinator,
            "Events that were published since the start."),
    gauge(Id::event_streams, "chorus_event_subscribers", {}, coordinator, "Open streams of events."),
    counter(Id::events_dropped, "chorus_event_subscribers_dropped_total", {}, coordinator,
            "Streams that were ended because their reader fell behind what is kept."),

    // Tensors and parameters
    gauge(Id::tensors, "chorus_tensors", {}, worker, "Tensors that the worker holds."),
    gauge(Id::tensor_bytes, "chorus_tensor_bytes", {}, worker,
          "Bytes of the tensors' current versions in the host's memory."),
    gauge(Id::tensor_limit, "chorus_tensor_limit_bytes", {}, worker,
          "How many bytes tensors and results may take together (--memory-limit-bytes)."),
    gauge(Id::memory_kept, "chorus_memory_kept_bytes", {}, worker,
          "Memory that nobody uses and that is kept for the next tensors and results, for at most 30 s."),
    gauge(Id::memory_private, "chorus_memory_private_bytes", {}, worker,
          "Memory in use that other workers of the host cannot read in place, because /dev/shm had no room."),
    gauge(Id::error_feedback_bytes, "chorus_error_feedback_bytes", {}, worker,
          "Memory of the residuals of compressed collectives with error feedback. It counts towards the limit."),
    counter(
        Id::memory_given_back, "chorus_memory_given_back_bytes_total", {"reason"}, worker,
        "Kept memory that was given back to the system, by reason: idle (nobody used it for a while, or somebody on "
        "the host lacked room), needed (this worker itself found no other)."),
    counter(Id::shared_memory_lacks, "chorus_shared_memory_lacks_total", {}, worker,
            "Tensors and results that found no room in /dev/shm, and went to private memory."),
    counter(Id::parameter_pushes, "chorus_parameter_pushes_total", {"kind", "result"}, worker,
            "Pushes to shards that this worker owns, by kind (gradient, rows, value) and result (applied, duplicate, "
            "refused)."),
    histogram(Id::parameter_push_duration, "chorus_parameter_push_duration_seconds", Buckets::duration_seconds,
              {"kind"}, worker,
              "From the arrival of a push at its owner to its answer, of those that were applied: its turn, the "
              "backups, the arithmetic."),
    counter(Id::parameter_pulls, "chorus_parameter_pulls_total", {"result"}, worker,
            "Pulls from shards that this worker owns: values were sent, or were unchanged (304)."),
    histogram(Id::parameter_staleness, "chorus_parameter_staleness_clocks", Buckets::clocks, {}, worker,
              "How many clocks the slowest client was behind the reader, of pulls that named a clock."),
    counter(Id::parameter_waits, "chorus_parameter_waits_total", {"what"}, worker,
            "Pulls and pushes that waited for others: for a clock, a version, or a sequence number before theirs."),
    counter(Id::parameter_nonfinite, "chorus_parameter_nonfinite_total", {}, worker,
            "Elements of pushes that were NaN or infinite, where the parameter does not accept them."),
    gauge(Id::parameter_shards, "chorus_parameter_shards", {"role"}, worker,
          "Shards on this worker, by role (owner, backup)."),
    gauge(Id::parameter_bytes, "chorus_parameter_shard_bytes", {"role"}, worker,
          "Bytes of the values of shards on this worker, by role."),
    gauge(Id::parameter_backups_behind, "chorus_parameter_backups_behind", {}, worker,
          "Backups of this worker's shards that do not have everything yet."),
    gauge(Id::parameter_rows, "chorus_parameter_rows", {"role"}, worker,
          "Rows that exist, of parameters whose rows are created lazily, by role of the shard (owner, backup)."),
    counter(Id::parameter_rows_created, "chorus_parameter_rows_created_total", {}, worker,
            "Rows that came to exist with a push, in shards that this worker owns."),
    counter(Id::parameter_log_records, "chorus_parameter_log_records_total", {}, worker,
            "Pushes that were written to the logs of shards that this worker owns, and synced."),
    counter(Id::parameter_log_bytes, "chorus_parameter_log_bytes_total", {}, worker,
            "Bytes that these pushes took in the logs."),
    histogram(Id::parameter_log_sync_duration, "chorus_parameter_log_sync_duration_seconds", Buckets::duration_seconds,
              {}, worker, "Writing and syncing the pushes that came together to a log; pushes wait for it."),
    counter(Id::parameter_log_truncations, "chorus_parameter_log_truncations_total", {}, worker,
            "Images of shards that were written to take the place of a log."),
    counter(
        Id::parameter_log_recoveries, "chorus_parameter_log_recoveries_total", {"result"}, worker,
        "Shards that were to be as their log has them when the worker had been started again, by result (recovered, "
        "refused)."),
    counter(Id::parameter_log_errors, "chorus_parameter_log_errors_total", {}, worker,
            "Failures of the disk to take what a log has; pushes are not acknowledged until it does."),
    histogram(Id::checkpoint_duration, "chorus_checkpoint_duration_seconds", Buckets::duration_seconds, {"result"},
              coordinator,
              "Duration of checkpoints of parameters, by result (succeeded, failed). One that a lost or unavailable "
              "parameter stops before anything is written has failed."),
    gauge(Id::checkpoint_timestamp, "chorus_checkpoint_timestamp_seconds", {}, coordinator,
          "When the last checkpoint that succeeded was committed, or a scheduled one found no parameter, in seconds "
          "since 1970: its age is time() - this. No series before the first of these since the start."),
    gauge(Id::checkpoint_schedule_timestamp, "chorus_checkpoint_schedule_timestamp_seconds", {}, coordinator,
          "When this coordinator began to make checkpoints by itself, in seconds since 1970: where there are standbys, "
          "when it began to lead. There if it makes any."),
    gauge(Id::checkpoint_interval, "chorus_checkpoint_interval_seconds", {}, coordinator,
          "How often a checkpoint is made by itself; there if one is."),
    gauge(Id::parameters, "chorus_parameters", {"state"}, coordinator,
          "Parameters by state: ready, degraded (a copy is missing), unavailable (a shard waits for a worker that is "
          "silent), lost (nobody has a shard any more)."),

    // Authentication
    gauge(Id::auth_enabled, "chorus_auth_enabled", {}, both,
          "1 if callers need a token (--auth-tokens), else 0: whoever reaches the service may do everything."),
    counter(
        Id::auth_refusals, "chorus_auth_refusals_total", {"reason"}, both,
        "Requests that were refused before any handler saw them, by reason: no token (missing), one that is unknown "
        "or expired, of another role, too many (rate), by a wrong name (host), from a web page (origin)."),
    gauge(Id::tls_certificate_expiry, "chorus_tls_certificate_expiry_timestamp_seconds", {}, both,
          "When the certificate of this service expires, in seconds since 1970; no series without TLS."),
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].id) != i) return false;
  return true;
}
static_assert(in_order() && table.size() == static_cast<std::size_t>(Id::tls_certificate_expiry) + 1);

}  // namespace

std::span<std::string_view const> Metric::labels() const {
  auto const end = std::find(label_names.begin(), label_names.end(), std::string_view());
  return {label_names.begin(), end};
}

std::span<Metric const> catalogue() { return table; }

Metric const& describe(Id id) { return table[static_cast<std::size_t>(id)]; }

}  // namespace chorus::metrics
