// Messages about parameters: arrays that are sharded over workers, changed by pushes and read by pulls. They describe
// parameters, their placement, and the coordinator's orders to workers. Values travel as application/octet-stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/parameters/optimizers.hpp"

namespace chorus::api {

// Names a checkpoint in the directory with which workers were started.
struct CheckpointName {
  std::string name;                     // [A-Za-z0-9._-]{1,64}
  std::optional<std::uint64_t> number;  // absent: the newest good one

  friend bool operator==(CheckpointName const&, CheckpointName const&) = default;
};

// PUT /v1/parameters/{name} at the coordinator.
struct ParameterRequest {
  std::string dtype = "f32";
  std::vector<std::uint64_t> shape;  // the first dimension counts rows
  std::string group;                 // its workers hold the shards
  OptimizerSettings optimizer;
  InitializerSettings initializer;
  std::int64_t staleness = -1;          // -1: asynchronous; 0: bulk-synchronous; N: a reader is at most N clocks ahead
  std::string reduce = "sum";           // how a round's gradients are combined if staleness is 0: "sum" or "avg"
  std::uint32_t replicas = 1;           // 2: a push is acknowledged when two workers have it
  std::string nonfinite = "accept";     // for NaN and infinity in gradients: "accept", "reject" or "zero"
  std::optional<std::uint32_t> shards;  // absent: one per member of the group, fewer for a small parameter
  // Clients whose clocks count if staleness is not -1, in the order in which gradients are summed; absent: the group's
  // workers in rank order.
  std::optional<std::vector<std::string>> clients;
  std::optional<CheckpointName> checkpoint;  // the parameter begins with its state in it
  // Most rows of a shard, which the first push to a row creates; absent: all rows exist from the start.
  std::optional<std::uint64_t> lazy_rows;
  // "log": an owner keeps all acknowledged pushes in a push log, and recovers them when it starts again; or "none".
  std::string durability = "none";
  std::string device = "cpu";  // "cuda": values and optimizer state lie on a GPU of each holder
  // true: a parameter of this name that is lost or unavailable begins anew, with initial values.
  bool recreate = false;

  friend bool operator==(ParameterRequest const&, ParameterRequest const&) = default;
};

// One copy of a shard on a worker.
struct ParameterEndpoint {
  std::uint32_t shard = 0;
  std::vector<std::uint64_t> elements;  // [begin, end) in the flat parameter
  std::string role;                     // "owner" answers clients, "backup" has the same state and takes over
  std::string worker;
  std::string incarnation;
  std::string url;
  std::uint32_t epoch = 0;  // of the shard's placement
  // "unavailable": this owner is silent, no other worker has the shard, and the coordinator waits for it.
  std::optional<std::string> state;
};

// The answer of GET and PUT /v1/parameters/{name}: the request with all defaults filled in, and the placement.
struct Parameter {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string group;
  OptimizerSettings optimizer;
  InitializerSettings initializer;
  std::int64_t staleness = -1;
  std::string reduce;
  std::uint32_t replicas = 1;
  std::string nonfinite;
  std::vector<std::string> clients;  // empty if clocks do not count
  std::optional<std::uint64_t> lazy_rows;
  std::string durability = "none";
  std::string device = "cpu";
  std::uint64_t bytes = 0;
  std::uint32_t epoch = 0;  // the highest of its shards; every change of the placement makes a new one
  // Random: tells the parameter from those of its name that were deleted before. Absent if an earlier release made it.
  std::optional<std::string> uid;
  std::optional<std::string> why;  // why it is not ready: the workers awaited, or why a push log could not be recovered
  // "ready"; "degraded": fewer replicas than requested; "unavailable": all holders of a shard are silent, and the
  // coordinator waits for them; "lost": all holders of a shard have ended, or a client has given the shard up.
  std::string state;
  std::vector<ParameterEndpoint> endpoints;  // by shard, owners first
};

struct ParameterList {
  std::vector<Parameter> items;
  std::optional<std::string> next_cursor;
};

struct ShardPeer {
  std::string worker;
  std::string incarnation;
  std::string url;
};

// PUT /v1/parameters/{name}/shards/{shard} at a worker, from the coordinator only. A worker refuses an epoch below the
// highest epoch of the shard that it has seen.
struct ShardAssignment {
  Parameter parameter;  // without endpoints
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;  // elements
  std::uint32_t epoch = 0;
  std::string role;         // "owner" or "backup"
  std::string worker;       // the addressee
  std::string incarnation;  // of the addressee
  bool fresh = false;       // a new parameter: the shard begins here, and does not wait for an image
  // Owner and backup are the same as before: the backup keeps its copy, and the owner continues from that state.
  bool continues = false;
  std::optional<CheckpointName> checkpoint;  // from which a fresh shard begins
  bool recover = false;                      // an owner that has started again: it recovers the shard from its push log
  // Term of the addressee at its last join: an owner takes no pushes under an order of an earlier term. Coordinators of
  // earlier releases leave it out.
  std::optional<std::uint64_t> term;
  std::vector<ShardPeer> backups;  // of an owner: the workers to which it sends its state
};

// POST /v1/shards at a worker: many assignments in one request. The worker accepts or refuses each by itself.
struct ShardAssignmentList {
  std::vector<ShardAssignment> items;
};
struct ShardAssignmentOutcome {
  std::optional<http::Problem> error;  // none: the worker has accepted the assignment
};
struct ShardAssignmentOutcomeList {
  std::vector<ShardAssignmentOutcome> items;  // in the order of the assignments
};

// Clock of one client, for parameters with staleness 0 or more.
struct ShardClock {
  std::string client;
  std::uint64_t clocks_done = 0;
};

// GET /v1/parameters/{name}/shards/{shard} at a worker. The coordinator's GET /v1/parameters/{name}/shards collects
// the answers of the owners.
struct ShardStatus {
  std::string parameter;
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;
  std::uint32_t epoch = 0;
  std::string role;
  bool complete = false;  // true on an owner, and on a backup that has every acknowledged push
  std::uint64_t version = 0;
  std::uint64_t position = 0;  // number of pushes that were applied or are held for their round
  std::vector<std::string> backups_complete;
  std::vector<ShardClock> clocks;
  std::optional<std::uint64_t> rows;  // existing rows; only with lazy rows
  // The worker had to join again: the owner takes no pushes until the coordinator confirms that it is the owner.
  bool unconfirmed = false;
};

struct ShardStatusList {
  std::vector<ShardStatus> items;
  std::optional<std::string> next_cursor;
};

// A client as a shard knows it: its incarnation, and the sequence number of its next push.
struct ShardClient {
  std::string name;
  std::string incarnation;
  std::uint64_t next_sequence = 0;
};
// A gradient that waits for the other gradients of its round. The bytes of the N-th are the array "held/N".
struct ShardHeld {
  std::string client;
  std::uint64_t sequence = 0;
  std::string dtype;
  std::optional<std::uint64_t> rows;  // number of rows in a push of rows, whose row numbers precede the values
};
// State of a shard beside its arrays. Owners send it to backups, and checkpoints and push logs contain it.
struct ShardState {
  std::uint64_t version = 0;
  std::uint64_t position = 0;
  std::uint64_t steps = 0;  // of the optimizer
  std::vector<ShardClient> clients;
  std::vector<ShardClock> clocks;
  std::vector<ShardHeld> held;
  std::optional<std::uint64_t> rows;  // existing rows; only with lazy rows
};

// POST /v1/checkpoints at the coordinator: a checkpoint of the named parameters, or of all, in any groups.
struct CheckpointRequest {
  std::string name;
  std::optional<std::vector<std::string>> parameters;
  std::uint32_t keep = 0;  // how many of the newest checkpoints of this name stay; 0: all
};
// The answer of POST /v1/checkpoints.
struct CheckpointAnswer {
  std::string name;
  std::uint64_t number = 0;
  std::uint64_t parameters = 0;
  std::uint64_t files = 0;
  double seconds = 0;
  // Parameters whose shards do not all contain the same pushes: a client ended before it had pushed to all shards.
  std::vector<std::string> unaligned;
};

// The coordinator makes a checkpoint by these requests to workers, all below POST /v1/checkpoints/{name}:
// 1. .../numbers draws the next number.
// 2. .../holds stops the shards and answers their places among the pushes of each client.
// 3. .../images lets each shard continue to a place that all shards of its parameter can reach, keeps an image of the
//    shard there, and releases the shard.
// 4. .../files writes a file of the worker's own shards and answers its part of the manifest.
// 5. .../commit makes a checkpoint of the files.
struct CheckpointNumber {
  std::uint64_t number = 0;
};
struct CheckpointShard {
  std::string parameter;
  std::uint32_t shard = 0;
};
struct CheckpointFile {
  std::uint64_t number = 0;
  std::vector<CheckpointShard> shards;
};
// Place of a shard among the pushes of each client; in rounds, at the end of the last round.
struct CheckpointPlace {
  std::string parameter;
  std::uint32_t shard = 0;
  std::vector<ShardClient> clients;  // by name; only clients that the shard knows
};
struct CheckpointPlaces {
  std::uint64_t number = 0;      // of the checkpoint
  std::uint64_t timeout_ms = 0;  // in a request: the longest that a shard is stopped
  std::vector<CheckpointPlace> items;
};
struct CheckpointPart {
  std::string manifest;
};
struct CheckpointCommit {
  std::uint64_t number = 0;
  std::uint32_t keep = 0;
  std::vector<std::string> parts;
};

// The answer of POST /v1/workers/{id}/handover at the coordinator.
struct HandOverAnswer {
  std::uint64_t shards_left = 0;  // shards that no other worker could take in time
};

// The answer to a push.
struct PushAnswer {
  std::uint64_t version = 0;  // of the parameter: the lowest of its shards
  std::uint32_t epoch = 0;
  std::uint64_t next_sequence = 0;
  bool duplicate = false;  // the push had been applied before
};

// Returns true for names that fit in a path, as names of tensors do: [A-Za-z0-9._~/-]{1,255}, without parts that are
// empty, "." or "..".
[[nodiscard]] bool is_parameter_name(std::string_view name);
// Returns the path of a parameter, in which its name is one segment: "/v1/parameters/layer%2Fweight".
[[nodiscard]] std::string parameter_path(std::string_view name);

}  // namespace chorus::api
