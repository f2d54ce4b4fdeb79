// Parameters: arrays that are sharded over workers, changed by pushes and read by pulls. What they are, where they
// stand, and what coordinator and workers say to each other about them. The bytes travel as application/octet-stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/optimizers.hpp"

namespace chorus::api {

// A checkpoint under the directory that workers were started with.
struct CheckpointName {
  std::string name;                     // [A-Za-z0-9._-]{1,64}
  std::optional<std::uint64_t> number;  // absent: the newest that is good

  friend bool operator==(CheckpointName const&, CheckpointName const&) = default;
};

// PUT /v1/parameters/{name} at the coordinator.
struct ParameterRequest {
  std::string dtype = "f32";
  std::vector<std::uint64_t> shape;  // rows are what the first dimension counts
  std::string group;                 // whose workers hold the shards
  OptimizerSettings optimizer;
  InitializerSettings initializer;
  std::int64_t staleness = -1;          // -1: asynchronous; 0: bulk-synchronous; N: a reader is at most N clocks ahead
  std::string reduce = "sum";           // of the clients' gradients where staleness is 0: "sum" or "avg"
  std::uint32_t replicas = 1;           // 2: a push is acknowledged when two workers have it
  std::string nonfinite = "accept";     // NaN and infinity in gradients: "accept", "reject" or "zero"
  std::optional<std::uint32_t> shards;  // absent: as many as the group has members, fewer for small ones
  // Whose clocks count where staleness is not -1, in the order in which gradients are summed; absent: the group's
  // workers in rank order.
  std::optional<std::vector<std::string>> clients;
  std::optional<CheckpointName> checkpoint;  // begins with what this checkpoint says of a parameter of this name
  // Rows come to exist with the first push to them, at most so many in each shard; absent: all rows exist.
  std::optional<std::uint64_t> lazy_rows;
  // "log": what an owner has acknowledged is in a log on its disk, and is there when it starts again; or "none".
  std::string durability = "none";
  std::string device = "cpu";  // "cuda": values and state lie on a GPU of each worker that has them
  // A parameter of this name that is lost, or unavailable and given up by this, begins anew, with initial values.
  bool recreate = false;

  friend bool operator==(ParameterRequest const&, ParameterRequest const&) = default;
};

// A part of a parameter on a worker. Elements [begin, end), as in a C++ range.
struct ParameterEndpoint {
  std::uint32_t shard = 0;
  std::vector<std::uint64_t> elements;  // begin, end
  std::string role;                     // "owner" answers clients, "backup" has the same and takes over
  std::string worker;
  std::string incarnation;
  std::string url;
  std::uint32_t epoch = 0;  // of the shard's placement
  // "unavailable": the coordinator does not hear this owner, waits for it, and nobody else has the shard.
  std::optional<std::string> state;
};

// The answer of GET and PUT /v1/parameters/{name}: what was asked for, completed, and where it stands.
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
  std::vector<std::string> clients;  // empty where clocks do not count
  std::optional<std::uint64_t> lazy_rows;
  std::string durability = "none";
  std::string device = "cpu";
  std::uint64_t bytes = 0;
  std::uint32_t epoch = 0;         // the highest of the shards'; every change of the placement makes a new one
  std::optional<std::string> why;  // it is not ready: for whom it waits, or what a log could not be recovered for
  // "ready"; "degraded": fewer replicas than asked for; "unavailable": a shard waits for the workers that have it,
  // which are silent; "lost": a shard that nobody has, because they have ended, or somebody has given it up
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
// highest that it has seen of the shard.
struct ShardAssignment {
  Parameter parameter;  // without endpoints
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;  // elements
  std::uint32_t epoch = 0;
  std::string role;         // "owner" or "backup"
  std::string worker;       // the addressee, with
  std::string incarnation;  // ... this incarnation
  bool fresh = false;       // a new parameter: the shard begins here, and does not wait for a copy
  // Owner and backup are the same as before: the backup has what it had, and the owner goes on with it from there.
  bool continues = false;
  std::optional<CheckpointName> checkpoint;  // of a fresh shard
  bool recover = false;                      // an owner that has started again: the shard is what its log says
  // The addressee's, as it joined: an owner takes no pushes by an order of an earlier term. Absent from coordinators of
  // earlier releases.
  std::optional<std::uint64_t> term;
  std::vector<ShardPeer> backups;  // of an owner: who is to have what it has
};

// POST /v1/shards at a worker: many assignments in one request; each is taken or refused by itself.
struct ShardAssignmentList {
  std::vector<ShardAssignment> items;
};
struct ShardAssignmentOutcome {
  std::optional<http::Problem> error;  // none: it has been taken
};
struct ShardAssignmentOutcomeList {
  std::vector<ShardAssignmentOutcome> items;  // in the order of the assignments
};

// How far a client has come, where clocks count.
struct ShardClock {
  std::string client;
  std::uint64_t clocks_done = 0;
};

// GET /v1/parameters/{name}/shards/{shard} at a worker. The coordinator's GET /v1/parameters/{name}/shards collects
// them from the owners.
struct ShardStatus {
  std::string parameter;
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;
  std::uint32_t epoch = 0;
  std::string role;
  bool complete = false;  // a backup that has everything that was ever acknowledged; an owner always
  std::uint64_t version = 0;
  std::uint64_t position = 0;  // pushes that were applied or are held for their round
  std::vector<std::string> backups_complete;
  std::vector<ShardClock> clocks;
  std::optional<std::uint64_t> rows;  // that exist, where they are created lazily
  // An owner whose worker had to join again, and which takes no pushes before it is told once more that it is the
  // owner.
  bool unconfirmed = false;
};

struct ShardStatusList {
  std::vector<ShardStatus> items;
  std::optional<std::string> next_cursor;
};

// What a shard is beside its arrays: travels to backups, and lies in checkpoints.
struct ShardClient {
  std::string name;
  std::string incarnation;
  std::uint64_t next_sequence = 0;
};
// A gradient that waits for the others of its round: array "held/N" of the N-th of them.
struct ShardHeld {
  std::string client;
  std::uint64_t sequence = 0;
  std::string dtype;
  std::optional<std::uint64_t> rows;  // of a push of rows, with their numbers before them
};
struct ShardState {
  std::uint64_t version = 0;
  std::uint64_t position = 0;
  std::uint64_t steps = 0;  // of the optimizer
  std::vector<ShardClient> clients;
  std::vector<ShardClock> clocks;
  std::vector<ShardHeld> held;
  std::optional<std::uint64_t> rows;  // that exist, where they are created lazily
};

// POST /v1/checkpoints at the coordinator: all parameters, or those that are named, of any groups.
struct CheckpointRequest {
  std::string name;
  std::optional<std::vector<std::string>> parameters;
  std::uint32_t keep = 0;  // the newest so many stay; 0: all of them
};
// Its answer.
struct CheckpointAnswer {
  std::string name;
  std::uint64_t number = 0;
  std::uint64_t parameters = 0;
  std::uint64_t files = 0;
  double seconds = 0;
  // Parameters whose shards have not all seen the same pushes in it: a client was gone before it had pushed to all of
  // them.
  std::vector<std::string> unaligned;
};

// POST /v1/checkpoints/{name}/numbers at a worker draws the next number; .../files writes a file of shards that the
// worker owns, and gives its part of the manifest; .../commit makes a checkpoint of the files. Before that, for the
// shards of a parameter to be written at the same place among its pushes: .../holds stops them and answers where they
// stand; .../images has each go on to a place that all of them can reach, remembers what it is there, and lets it go.
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
// Where a shard stands among the pushes of each client. In rounds: at the end of the last one.
struct CheckpointPlace {
  std::string parameter;
  std::uint32_t shard = 0;
  std::vector<ShardClient> clients;  // by name; those of whom the shard has heard
};
struct CheckpointPlaces {
  std::uint64_t number = 0;      // of the checkpoint
  std::uint64_t timeout_ms = 0;  // of a request: no shard is stopped for longer
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
  std::uint64_t shards_left = 0;  // that nobody could take, or not in time
};

// The answer to a push.
struct PushAnswer {
  std::uint64_t version = 0;  // of the parameter: the lowest of its shards'
  std::uint32_t epoch = 0;
  std::uint64_t next_sequence = 0;
  bool duplicate = false;  // it had been applied before
};

// Path-safe, as the names of tensors: [A-Za-z0-9._~/-]{1,255}, no empty, "." or ".." part.
[[nodiscard]] bool is_parameter_name(std::string_view name);
// "/v1/parameters/layer%2Fweight": a name is one segment.
[[nodiscard]] std::string parameter_path(std::string_view name);

}  // namespace chorus::api
