#include "http/api/cluster/probes.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {
namespace {

using enum Method;
using enum ProblemCode;

constexpr Field epoch{"Chorus-Epoch", Type::integer, "of the placement", true};
constexpr Field position{"Chorus-Position", Type::integer, "in the shard's log", true};
constexpr Field history{"Chorus-History", Type::integer, "which pushes the sender has taken before, as one number",
                        false};

void add_runs(Table& table) {
  table.add(put, "/v1/runs/{run}", Access::join, "From the coordinator: the worker's part of a collective")
      .takes<api::RunRequest>()
      .gives<api::RunReport>(200, "It has ended; its result is held beside the old version.")
      .fails_with({unknown_tensor, mismatch, epoch_fenced, busy, cancelled, region_damaged, unsupported,
                   idempotency_reused, device_failed});
  table.add(get, "/v1/runs/{run}", Access::join, "How a run stands")
      .gives<api::RunStatus>(200, "So.")
      .fails_with({unknown_run});
  table.add(post, "/v1/runs/{run}/commit", Access::join, "The result becomes the tensor's next version")
      .gives<api::CommitAnswer>(200, "It has.")
      .fails_with({unknown_run, mismatch, busy, cancelled, epoch_fenced, plan_mismatch, group_broken, region_damaged,
                   device_failed, peer_lost, corrupt_frame, deadline_exceeded});
  table.add(delete_, "/v1/runs/{run}", Access::join, "End a run, and forget what it holds")
      .gives_nothing(204, "It is forgotten, or will not begin if it comes.")
      .fails_with({mismatch});
  table.add(get, "/v1/link", Access::join, "Upgrade to the protocol of links between members")
      .gives_nothing(101, "The connection is a link from now on.");
}

void add_probes(Table& table) {
  table.add(get, "/v1/probe", Access::join, "So many bytes, to measure the way here")
      .asks({{"bytes", Type::integer, "0 unless given"}})
      .gives(200, "They.", {{octets_media}});
  table.add(post, "/v1/probes", Access::join, "Measure the way to another worker that the coordinator knows")
      .takes<api::ProbeRequest>()
      .gives<api::ProbeReport>(200, "What was measured.")
      .fails_with({worker_unreachable});
}

Operation& taken_by_backup(Operation& operation) {
  return operation.gives_nothing(204, "It has been taken.").fails_with({unknown_parameter, misdirected, epoch_fenced});
}

void add_shards(Table& table) {
  table
      .add(put, "/v1/parameters/{name}/shards/{shard}", Access::join,
           "From the coordinator: own a shard, or back it up")
      .takes<api::ShardAssignment>()
      .gives_nothing(204, "It has been taken.")
      .fails_with({epoch_fenced, not_found, mismatch, digest_mismatch, unsupported, parameter_lost, log_damaged,
                   rows_exhausted, deadline_exceeded});
  table.add(post, "/v1/shards", Access::join, "From the coordinator: own many shards, or back them up")
      .takes<api::ShardAssignmentList>()
      .gives<api::ShardAssignmentOutcomeList>(200, "What became of each.")
      .fails_with({digest_mismatch});
  table.add(get, "/v1/parameters/{name}/shards/{shard}", Access::join, "How far a shard is")
      .gives<api::ShardStatus>(200, "So far.")
      .fails_with({unknown_parameter, misdirected});
  table.add(delete_, "/v1/parameters/{name}/shards/{shard}", Access::join, "Forget a shard")
      .asks({{"epoch", Type::integer, "not one of a later epoch"}})
      .gives_nothing(204, "It is forgotten.")
      .fails_with({unknown_parameter, misdirected, epoch_fenced});
  taken_by_backup(
      table.add(post, "/v1/parameters/{name}/shards/{shard}/log", Access::join, "From the owner: a push, to its backup")
          .takes_octets()
          .reads_headers(
              {epoch, position, history, {"Chorus-Kind", Type::text, "gradient, rows, value, clients", true}}))
      .fails_with({out_of_order, mismatch, length_mismatch, length_required, payload_too_large, unsupported_media_type,
                   unsupported, deadline_exceeded});
  taken_by_backup(table
                      .add(put, "/v1/parameters/{name}/shards/{shard}/arrays/{array...}", Access::join,
                           "From the owner: a piece of its state, to a backup that is filled")
                      .takes_octets()
                      .asks({{"image", Type::integer, "of which it is a piece"},
                             {"offset", Type::integer, "of the piece, in bytes"},
                             {"bytes", Type::integer, "of the array"}})
                      .reads_headers({epoch}))
      .fails_with({out_of_order, mismatch, length_required});
  taken_by_backup(table
                      .add(post, "/v1/parameters/{name}/shards/{shard}/state", Access::join,
                           "From the owner: the image is complete, and this is the rest")
                      .takes<api::ShardState>()
                      .asks({{"image", Type::integer, "that is complete"}})
                      .reads_headers({epoch, history}))
      .fails_with({out_of_order, mismatch});
  taken_by_backup(table
                      .add(post, "/v1/parameters/{name}/shards/{shard}/complete", Access::join,
                           "From the owner: from here on the backup counts")
                      .reads_headers({epoch, position, history}))
      .fails_with({out_of_order});
}

void add_checkpoints(Table& table) {
  table.add(get, "/v1/checkpoints/{name}", Access::join, "The number of the newest checkpoint")
      .gives<api::CheckpointNumber>(200, "It; 0: there is none.")
      .fails_with({unsupported, not_found, deadline_exceeded});
  table.add(post, "/v1/checkpoints/{name}/numbers", Access::join, "A number for a new checkpoint")
      .gives<api::CheckpointNumber>(200, "One that nothing has.")
      .fails_with({unsupported, deadline_exceeded});
  table.add(post, "/v1/checkpoints/{name}/holds", Access::join, "Stop shards between two pushes, for a moment")
      .takes<api::CheckpointPlaces>()
      .gives<api::CheckpointPlaces>(200, "Where they stand.")
      .fails_with({unknown_parameter, misdirected, digest_mismatch, deadline_exceeded});
  table
      .add(post, "/v1/checkpoints/{name}/images", Access::join,
           "Let the shards go on to these places, to be written as they are there")
      .takes<api::CheckpointPlaces>()
      .gives<api::CheckpointPlaces>(200, "Where each of them was.")
      .fails_with({unknown_parameter, misdirected, out_of_order, digest_mismatch, deadline_exceeded});
  table.add(post, "/v1/checkpoints/{name}/files", Access::join, "Write the worker's shards into a file")
      .takes<api::CheckpointFile>()
      .gives<api::CheckpointPart>(200, "What is in it.")
      .fails_with({unsupported, unknown_parameter, misdirected, deadline_exceeded, already_exists});
  table
      .add(delete_, "/v1/checkpoints/{name}/files/{number}", Access::join,
           "The checkpoint comes to nothing: what the worker has written of it goes")
      .gives_nothing(204, "It is gone, or there was nothing.")
      .fails_with({unsupported, deadline_exceeded});
  table.add(post, "/v1/checkpoints/{name}/commit", Access::join, "The files together are a checkpoint")
      .takes<api::CheckpointCommit>()
      .gives_nothing(204, "They are.")
      .fails_with({unsupported, not_found, digest_mismatch, already_exists, deadline_exceeded});
}

}  // namespace

void add_member_operations(Table& table) {
  add_runs(table);
  add_probes(table);
  add_shards(table);
  add_checkpoints(table);
}

}  // namespace chorus::http::openapi
