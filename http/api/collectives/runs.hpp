// Runs: the coordinator's order to one worker for one collective, and the worker's report. Also members' calls.
//
// PUT /v1/runs/{run} with a RunRequest starts the run. The worker answers with a RunReport when the run has ended on
// this rank, and holds the result beside the old version. POST /v1/runs/{run}/commit makes the result the tensor's next
// version; DELETE /v1/runs/{run} aborts the run, or drops the held result. Both are idempotent. GET /v1/runs/{run}
// tells a restarted coordinator the state of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/json/problem.hpp"

namespace chorus::api {

struct Schedule {
  // The pipelining unit, 4 KiB to 64 MiB. None: the group's.
  std::optional<std::uint64_t> segment_bytes;
  std::uint32_t window = 4;  // segments of a message that are handed to a link at a time, 1..64
};
inline constexpr std::uint64_t default_segment_bytes = 262144;

// Which messages are codes of floats, and of which format: docs/reference/compressed_collectives.md. A string is the
// format alone: all messages are codes.
struct Compression {
  std::string format;  // bf16, f16, int8 or fp8_e4m3; auto: the fastest of `allow`, or none if elements are faster
  // host, rack, zone or region: messages between two of them are codes, those within one are elements.
  std::optional<std::string> between;
  std::optional<std::vector<std::string>> allow = std::nullopt;  // with auto: formats; none: bf16 alone
};

struct Peer {
  std::uint32_t rank = 0;
  std::string worker;
  std::string incarnation;
  std::string url;
};

// Destination of a rank's result, on ranks that get one.
struct RunResult {
  std::string tensor;
  std::vector<std::uint64_t> shape;
  // Present version of the tensor; 0: the tensor does not exist; none: any version is replaced.
  std::optional<std::uint64_t> version;
};

struct RunRequest {
  std::uint64_t run = 0;  // unique for all time
  std::string group;
  std::uint32_t epoch = 0;
  std::string token;  // hex; every link of the run presents it
  std::string op;
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::optional<std::vector<std::uint32_t>> by_position;  // see Group; none: rank i is at position i
  std::uint32_t rank = 0;
  std::vector<Peer> members;  // in rank order; empty: those of the epoch, and the epoch's positions, see by_worker
  // With members of the epoch: true if rank r of the run is the member with the r-th id, not the group's rank r.
  std::optional<bool> by_worker;
  std::string tensor;  // "" for a barrier
  // Admitted version of the rank's input, if the rank brings one. A worker refuses another version with 409 mismatch.
  std::uint64_t version = 0;
  std::string dtype;
  std::uint64_t elements = 0;                   // of the whole vector (plan::Sizes); not used with counts
  std::vector<std::uint64_t> counts;            // elements per block, if blocks are uneven
  std::vector<std::uint64_t> receive_counts;    // of all_to_all with counts: elements received from each rank
  std::optional<RunResult> result;              // none: the next version of the tensor, with its shape
  std::uint32_t parts = 0;                      // the worker's tensors are tensor/0 ... tensor/{parts-1}; 0: one tensor
  std::string local_algorithm = "centralized";  // between the parts of one worker
  std::uint64_t contributions = 0;              // number of parts of all workers, by which avg divides; 0: no parts
  std::string reduce;
  std::optional<Compression> compression;
  std::optional<bool> error_feedback;  // see CollectiveRequest
  bool in_place = false;
  bool digests = true;
  Schedule schedule;
  std::uint64_t timeout_ms = 30000;
};

struct RunReport {
  std::uint64_t run = 0;
  std::uint32_t rank = 0;
  std::string worker;
  std::string state;             // "succeeded", "failed"
  std::uint64_t started_us = 0;  // monotonic clock of the worker: only differences within one worker mean anything
  double seconds = 0;            // from start to end on this rank
  double wait_seconds = 0;       // time in which an instruction waited for nothing but a peer
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;                   // number of completed instructions
  std::optional<std::string> input_digest;   // xxh3-64, hex
  std::optional<std::string> output_digest;  // equal on all ranks of an all_reduce
  std::uint64_t version = 0;                 // after commit
  std::optional<http::Problem> error;
};

// GET /v1/runs/{run} at a worker: state of the run. 404 unknown_run if the run never came, or ended long ago.
struct RunStatus {
  std::uint64_t run = 0;
  std::string state;                // running, held, committing, committed, failed, dropped
  std::optional<RunReport> report;  // present once the run has ended; has the new version once committed
};

struct CommitAnswer {
  std::uint64_t version = 0;
};

// A members' call, POST /v1/groups/{group}/{op} at a worker: every member calls its own worker, without the
// coordinator. Calls are matched by order. Each call carries a fingerprint; if fingerprints differ, all ranks fail with
// plan_mismatch. After a failure the group answers group_broken until the coordinator has made a new epoch.
// docs/guides/member_calls.md describes repeated calls.
struct LocalCall {
  // Number of the call among the calls of this member: 409 out_of_order unless it is the next. None: the next.
  std::optional<std::uint64_t> sequence;
  std::optional<std::uint32_t> epoch;  // the epoch that the caller knows: 409 epoch_fenced in another. None: any
  // "" for a barrier. A worker that has x/0, x/1, ... but no x brings all of these together as "x".
  std::string tensor;
  // Instead of `tensor`, except for gather and scatter: many small tensors as one vector, the same on all
  // members.
  std::vector<std::string> tensors;
  std::optional<std::string> output;  // the tensor that takes the result; none: the same tensor
  // Dtype of a tensor that this worker does not have: in broadcast and scatter, on every rank but the root.
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;  // likewise: shape of this rank's result
  std::uint32_t root = 0;                           // of operations that have a root
  std::vector<std::uint64_t> counts;                // rows per rank, if uneven; all_to_all: rows sent to each rank
  std::vector<std::uint64_t> receive_counts;        // all_to_all: rows received from each rank
  std::string reduce = "sum";
  std::optional<Compression> compression;  // see CollectiveRequest
  std::optional<bool> error_feedback;      // likewise; members may differ
  bool in_place = false;
  std::optional<std::string> algorithm;  // none: the group's selection table
  std::string local_algorithm = "auto";  // between x/0, x/1, ... of one worker
  // Number of tensors of all workers, if avg is taken over several per worker; none: every worker has as many as this.
  std::optional<std::uint64_t> contributions;
  std::optional<std::uint64_t> timeout_ms;  // none: derived from durations of such calls in the epoch, see Pace
  Schedule schedule;
};
struct LocalReport {
  std::string group;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t next_sequence = 0;  // of this member's next call
  std::uint32_t rank = 0;
  std::string algorithm;
  std::optional<std::string> wire_format;  // of the codes that were sent; none: elements
  double seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t version = 0;  // of several tensors: the sum of their versions
  std::uint32_t tensors = 0;  // number of tensors that this worker brought
};

}  // namespace chorus::api
