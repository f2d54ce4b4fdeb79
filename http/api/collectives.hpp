// Collectives as users launch and read them at the coordinator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/groups.hpp"
#include "http/api/link_matrix.hpp"
#include "http/api/runs.hpp"
#include "http/json/problem.hpp"

namespace chorus::api {

// POST /v1/collectives, PUT /v1/collectives/{id}
struct CollectiveRequest {
  std::string group;
  std::string op = "all_reduce";
  std::string tensor;                 // every rank's; not given for a barrier
  std::optional<std::string> output;  // the tensor that takes the result; none: the next version of `tensor`
  std::string reduce = "sum";
  // Rows (of the first dimension) per rank, where they are to be uneven: what reduce_scatter and scatter leave on each.
  // all_to_all: p numbers for each of p ranks, one rank after the other: what it sends to each.
  std::optional<std::vector<std::uint64_t>> counts;
  std::string local_algorithm = "auto";  // among the tensors of a worker that has several, tensor/0 and so on
  std::string algorithm = "auto";
  std::optional<std::uint32_t> root;  // of operations that have one: 0; of algorithms: chosen
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;  // e.g. rows and columns of a torus
  std::optional<std::uint32_t> epoch;  // refuse with epoch_fenced unless the group stands at this one
  std::optional<std::uint64_t>
      timeout_ms;  // none: from what such collectives of the group took, collectives/core/pace.hpp
  bool in_place = false;
  // "shrink": when a member is lost it is begun again in the group's next epoch, from inputs that are intact, within
  // the same timeout; "fail": it fails. Not given: as the group has it. What is in place fails.
  std::optional<std::string> on_failure;
  bool reproducible = false;
  // bf16, f16, int8, fp8_e4m3: codes of this format are sent, which lose precision; of all_reduce, reduce,
  // reduce_scatter, all_gather and broadcast of floats.
  std::optional<std::string> compression;
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

struct LowerBound {
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};

struct RankRecord {
  std::uint32_t rank = 0;
  std::string worker;
  std::uint32_t parts = 0;            // tensors of the name on this worker, if they are tensor/0 and so on
  std::optional<std::string> device;  // where its tensor lies: "cpu", "cuda:0"; of parts all of them; none: no tensor
  std::string state;                  // pending running succeeded failed
  double late_seconds = 0;            // it came so much later than the middle rank, where that can be told; 0: not late
  std::optional<RunReport> report;
};

// One that failed, and was followed by another.
struct Attempt {
  std::uint64_t run = 0;
  std::uint32_t epoch = 0;
  http::Problem error;
};

// A collective that makes no progress: whom it waits for, and where every rank stands.
struct StalledRank {
  std::uint32_t rank = 0;
  std::string worker;
  // silent (its worker does not answer), not_begun, busy (its worker prepares or finishes the run), running, ended
  std::string state;
  std::string instruction;            // "recv from rank 2, message 1 (step 7 of 12), 0 of 4096 bytes", or ""
  std::optional<std::uint32_t> peer;  // of the instruction
  double for_s = 0;                   // for how long
};
struct Stall {
  std::string since;                       // RFC 3339, for people
  double for_s = 0;                        // when it was looked at last
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
  std::uint64_t timeout_ms = 0;  // that it has, or was given by the request; 0: before it is planned
  std::string algorithm;         // chosen
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::optional<std::string> local_algorithm;  // where a worker has several tensors of the name
  std::optional<double> compression_ratio;     // bytes of the tensor per byte of its codes; none: not compressed
  std::string reason;
  std::vector<Considered> considered;  // the cheapest way of each of at most ten algorithms, and the chosen one
  double predicted_seconds = 0;
  LowerBound lower_bound;
  std::string created_at;           // RFC 3339, for people
  double seconds = 0;               // admission to commit
  double arrival_skew_seconds = 0;  // last minus first launch confirmed
  std::vector<RankRecord> ranks;
  std::vector<Attempt> attempts;           // before this one
  std::optional<Stall> stalled;            // now; of one that failed, when it failed
  std::optional<std::string> traceparent;  // of the request that launched it
  std::optional<http::Problem> error;
};

struct CollectiveList {
  std::vector<Collective> items;
  std::optional<std::string> next_cursor;
};

// POST /v1/plans: a dry run, for a group that stands or for one that could.
struct PlanRequest {
  std::optional<std::string> group;
  std::optional<std::uint32_t> ranks;  // as many as the rest says; alone: all on one host
  std::optional<std::vector<std::string>> localities;
  std::optional<std::string> topology;  // instead of localities, see collectives/topology/shape_spec.hpp
  std::optional<LinkMatrix> links;      // ranks are then ordered by them; alone: hosts of one worker
  std::string op = "all_reduce";
  std::uint64_t bytes = 0;
  std::string dtype = "f32";
  std::string algorithm = "auto";
  std::optional<std::uint32_t> root;  // with links: the worker of this row
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;
  bool reproducible = false;
  std::optional<std::string> compression;
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
  LowerBound lower_bound;
  std::optional<double> compression_ratio;  // bytes of the vector per byte of its codes; none: not compressed
  bool verified = false;
  std::string verification;  // "every output chunk holds every rank's contribution once", or the failure
  std::vector<std::vector<PlannedMove>> rounds;  // left empty above 64 ranks
  // With links. order[rank] is the row of the worker that became this rank; stretch is the mean time of a ring's hop as
  // a multiple of the fastest hop that there is, over the workers as listed and over the ranks.
  std::optional<std::vector<std::uint32_t>> order;
  std::optional<Stretch> stretch;
};

}  // namespace chorus::api
