// Messages with which clients launch, plan and read collectives at the coordinator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/cluster/link_matrix.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/json/problem.hpp"

namespace chorus::api {

// POST /v1/collectives, PUT /v1/collectives/{id}
struct CollectiveRequest {
  std::string group;
  std::string op = "all_reduce";
  std::string tensor;                 // the name on every rank; "" for a barrier
  std::optional<std::string> output;  // the tensor that takes the result; none: the next version of `tensor`
  std::string reduce = "sum";
  // Rows (of the first dimension) per rank, if uneven: the result of reduce_scatter and scatter on each rank.
  // all_to_all: p x p numbers, in row-major order: rows that rank i sends to rank j.
  std::optional<std::vector<std::uint64_t>> counts;
  std::string local_algorithm = "auto";  // between tensor/0, tensor/1, ... of one worker
  std::string algorithm = "auto";
  std::optional<std::uint32_t> root;  // absent: 0 for rooted operations, otherwise chosen for rooted algorithms
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;  // e.g. rows and columns of a torus
  std::optional<std::uint32_t> epoch;                         // 409 epoch_fenced unless this is the group's epoch
  std::optional<std::uint64_t> timeout_ms;  // none: from durations of such collectives of the group, see Pace
  bool in_place = false;
  // "shrink": a collective that loses a member starts again in the group's next epoch, from intact inputs, within the
  // same timeout. "fail": it fails. Absent: the group's setting. A collective in place always fails.
  std::optional<std::string> on_failure;
  bool reproducible = false;
  // Sends codes of floats, which lose precision. For all_reduce, reduce, reduce_scatter, all_gather and broadcast.
  std::optional<Compression> compression;
  // With compression of one tensor per worker: each worker keeps what the codes lack of its contribution, and adds it
  // to that of the next such collective of the tensor and group.
  std::optional<bool> error_feedback;
  Schedule schedule;
};

struct Considered {
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;  // empty: the algorithm's own choice
  double predicted_seconds = 0;
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};

// A format that "auto" was allowed, or the elements themselves, with the best plan of each.
struct ConsideredFormat {
  std::optional<std::string> format;  // none: elements
  std::string algorithm;
  double predicted_seconds = 0;
  std::optional<std::uint64_t> wire_bytes;  // size of the codes; none: elements
};

struct LowerBound {
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};

struct RankRecord {
  std::uint32_t rank = 0;
  std::string worker;
  std::uint32_t parts = 0;  // number of tensors tensor/0, tensor/1, ... on this worker; 0: one tensor
  // Device of the rank's tensor: "cpu", "cuda:0"; of parts: the devices of all; none: no tensor.
  std::optional<std::string> device;
  std::string state;        // pending running succeeded failed
  double late_seconds = 0;  // lateness against the median rank; 0: not late, or unknown
  std::optional<RunReport> report;
};

// A failed run of a collective that was followed by another run.
struct Attempt {
  std::uint64_t run = 0;
  std::uint32_t epoch = 0;
  http::Problem error;
};

// State of one rank of a stalled collective.
struct StalledRank {
  std::uint32_t rank = 0;
  std::string worker;
  // silent (its worker does not answer), not_begun, busy (its worker prepares or finishes the run), running, ended.
  std::string state;
  std::string instruction;            // "recv from rank 2, message 1 (step 7 of 12), 0 of 4096 bytes", or ""
  std::optional<std::uint32_t> peer;  // of the instruction
  double for_s = 0;                   // seconds without progress
};
// A collective that makes no progress: the ranks that it waits for, and the state of every rank.
struct Stall {
  std::string since;                       // RFC 3339, for people
  double for_s = 0;                        // duration of the stall at the last check
  std::vector<std::uint32_t> waiting_for;  // ranks that all others wait for
  std::vector<StalledRank> ranks;
  std::string text;  // one sentence
};

struct Collective {
  std::string id;
  std::string state;  // pending planned running succeeded failed cancelled
  CollectiveRequest request;
  std::uint64_t run = 0;
  std::uint32_t epoch = 0;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;       // of one rank's tensor
  std::uint64_t timeout_ms = 0;  // chosen, or given by the request; 0: not planned yet
  std::string algorithm;         // chosen
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::optional<std::string> local_algorithm;  // only if a worker has several tensors of the name
  std::optional<std::string> wire_format;      // of the codes: asked for, or chosen by "auto"; none: not compressed
  std::optional<std::uint64_t> wire_bytes;     // size of the tensor's codes; none: not compressed
  std::optional<double> compression_ratio;     // bytes of the tensor per byte of its codes
  std::string reason;
  std::vector<Considered> considered;  // the cheapest candidate of each of up to ten algorithms, and the chosen one
  std::optional<std::vector<ConsideredFormat>> considered_formats;  // with compression "auto": fastest first
  double predicted_seconds = 0;
  LowerBound lower_bound;
  std::string created_at;           // RFC 3339, for people
  double seconds = 0;               // from admission to commit
  double arrival_skew_seconds = 0;  // time between the first and the last confirmed launch
  std::vector<RankRecord> ranks;
  std::vector<Attempt> attempts;  // earlier runs, all of which failed
  std::optional<Stall> stalled;   // present state of the stall; of a failed collective, the state at the failure
  std::optional<std::string> traceparent;  // of the request that launched the collective
  std::optional<http::Problem> error;
};

struct CollectiveList {
  std::vector<Collective> items;
  std::optional<std::string> next_cursor;
};

// POST /v1/plans: a dry run for an existing or an imagined group.
struct PlanRequest {
  std::optional<std::string> group;
  std::optional<std::uint32_t> ranks;  // must agree with the other fields; alone: all ranks on one host
  std::optional<std::vector<std::string>> localities;
  std::optional<std::string> topology;  // instead of localities, see collectives/topology/shape_spec.hpp
  std::optional<LinkMatrix> links;      // order the ranks; alone: every worker has its own host
  std::string op = "all_reduce";
  std::uint64_t bytes = 0;
  std::string dtype = "f32";
  std::string algorithm = "auto";
  std::optional<std::uint32_t> root;  // with links: the worker of this row
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;
  bool reproducible = false;
  std::optional<Compression> compression;
};

struct PlannedMove {
  std::string op;  // send, recv, recv_reduce, copy, reduce
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 1;
};

struct PlanAnswer {
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::string reason;
  double predicted_seconds = 0;
  std::vector<Considered> considered;
  std::optional<std::vector<ConsideredFormat>> considered_formats;  // with compression "auto": fastest first
  LowerBound lower_bound;
  std::optional<std::string> wire_format;   // of the codes: asked for, or chosen by "auto"; none: not compressed
  std::optional<std::uint64_t> wire_bytes;  // size of the vector's codes; none: not compressed
  std::optional<double> compression_ratio;  // bytes of the vector per byte of its codes
  bool verified = false;
  std::string verification;  // "every output chunk holds every rank's contribution once", or the failure
  std::vector<std::vector<PlannedMove>> rounds;     // empty above 64 ranks
  std::optional<std::vector<std::uint32_t>> order;  // with links: order[rank] is the row of its worker
  std::optional<Stretch> stretch;                   // with links
};

}  // namespace chorus::api
