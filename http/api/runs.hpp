// Runs: what the coordinator asks one worker to do for one collective, and what the worker reports.
//
// PUT /v1/runs/{run} with a RunRequest starts it and is answered with a RunReport when it has ended on this rank; the
// result is held beside the old version. POST /v1/runs/{run}/commit makes it the tensor's next version; DELETE
// /v1/runs/{run} aborts, or drops the held result. Both are idempotent. GET /v1/runs/{run} tells a coordinator that was
// started again what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/json/problem.hpp"

namespace chorus::api {

struct Schedule {
  // 4096..64 MiB: the pipelining unit. None: the group's.
  std::optional<std::uint64_t> segment_bytes;
  std::uint32_t window = 4;  // segments queued per link before the next is handed over, 1..64
};
inline constexpr std::uint64_t default_segment_bytes = 262144;

struct Peer {
  std::uint32_t rank = 0;
  std::string worker;
  std::string incarnation;
  std::string url;
};

// Where the result of a rank goes that gets one.
struct RunResult {
  std::string tensor;
  std::vector<std::uint64_t> shape;
  std::optional<std::uint64_t> version;  // it stands at now, 0: it does not exist; none: whatever there is, is replaced
};

struct RunRequest {
  std::uint64_t run = 0;  // never given twice
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
  std::vector<Peer> members;  // in rank order
  std::string tensor;         // "" for a barrier
  std::uint64_t version = 0;  // the version admitted, of ranks that bring one; another one is refused with 409 mismatch
  std::string dtype;
  std::uint64_t elements = 0;                   // of the whole vector (plan::Sizes); not used with counts
  std::vector<std::uint64_t> counts;            // elements per block, where blocks are uneven
  std::vector<std::uint64_t> receive_counts;    // all_to_all with counts
  std::optional<RunResult> result;              // none: the next version of the tensor, with its shape
  std::uint32_t parts = 0;                      // the worker's tensors are tensor/0 ... tensor/{parts-1}; 0: one tensor
  std::string local_algorithm = "centralized";  // among the parts
  std::uint64_t contributions = 0;              // parts of all workers together, where there are any: avg divides by it
  std::string reduce;
  std::optional<std::string> compression;  // format of the codes that are sent
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
  double seconds = 0;            // start to end on this rank
  double wait_seconds = 0;       // in which an instruction waited for a peer alone
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;                   // instructions run
  std::optional<std::string> input_digest;   // xxh3-64, hex
  std::optional<std::string> output_digest;  // equal on all ranks of an all_reduce
  std::uint64_t version = 0;                 // after commit
  std::optional<http::Problem> error;
};

// GET /v1/runs/{run} at a worker: what became of it there. 404 unknown_run if it never came, or ended long ago.
struct RunStatus {
  std::uint64_t run = 0;
  std::string state;                // running, held, committing, committed, failed, dropped
  std::optional<RunReport> report;  // once it has ended; with the new version once committed
};

struct CommitAnswer {
  std::uint64_t version = 0;
};

// POST /v1/groups/{group}/{op} at a worker: every member calls its own worker, no coordinator takes part. Calls are
// matched by order; each carries a fingerprint of (op, dtype, elements, reduce, in_place), and ranks that differ all
// fail with plan_mismatch. After a failure the group answers group_broken until the coordinator has made a new epoch.
// docs/guides/member_calls.md says what becomes of a call that comes again.
struct LocalCall {
  // The number of the call among those of this member: 409 out_of_order unless it is the next one. None: the next.
  std::optional<std::uint64_t> sequence;
  std::optional<std::uint32_t> epoch;  // that the caller knows of: 409 epoch_fenced in another one. None: any
  std::string
      tensor;  // "" for a barrier; of a worker that has x/0, x/1, ... and no x these are brought together as "x"
  // Instead of `tensor`, to all_reduce, reduce and broadcast: many small tensors as one vector. The same list
  // everywhere.
  std::vector<std::string> tensors;
  std::optional<std::string> output;  // the tensor that takes the result; none: the same
  // Of a tensor that this worker does not have: where it is only told, in broadcast and scatter, but at the root. The
  // shape is that of what it gets.
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::uint32_t root = 0;                     // of operations that have one
  std::vector<std::uint64_t> counts;          // rows per rank where they are uneven; all_to_all: sent to each rank,
  std::vector<std::uint64_t> receive_counts;  // and received from each
  std::string reduce = "sum";
  std::optional<std::string> compression;  // format of the codes that are sent: see CollectiveRequest
  bool in_place = false;
  std::optional<std::string> algorithm;  // none: the group's selection table
  std::string local_algorithm = "auto";  // among x/0, x/1, ...
  // Tensors of all workers together, where avg is taken over several per worker; none: as many everywhere as here.
  std::optional<std::uint64_t> contributions;
  std::optional<std::uint64_t> timeout_ms;  // none: from what such calls of the epoch took, collectives/core/pace.hpp
  Schedule schedule;
};
struct LocalReport {
  std::string group;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t next_sequence = 0;  // of this member's next call
  std::uint32_t rank = 0;
  std::string algorithm;
  double seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t version = 0;  // of several tensors the sum
  std::uint32_t tensors = 0;  // that this worker brought
};

}  // namespace chorus::api
