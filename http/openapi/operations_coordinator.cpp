#include "http/api/cluster/events.hpp"
#include "http/api/cluster/links.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/simulations.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {
namespace {

using enum Method;
using enum ProblemCode;

constexpr Field location{"Location", Type::text, "where it is", true};
constexpr Field retry_after{"Retry-After", Type::integer, "seconds; there while it has not ended"};
constexpr Field wait{"wait", Type::text, "answer when it has ended, or after so long: 500ms, 30s, 10m at most"};

void add_page(Table& table) {
  table.add(get, "/", Access::open, "The status page; a worker says here who it is")
      .gives(200, "A page for a browser.", {{"text/html"}});
  table.add(get, "/ui/{name}", Access::open, "A file of the status page")
      .reads_headers({{"If-None-Match", Type::text, "an ETag of the file"}})
      .gives(200, "The file.", {{"text/javascript"}, {"text/css"}, {"image/svg+xml"}, {"text/html"}},
             {{"ETag", Type::text, "of the file", true}})
      .gives_nothing(304, "It has not changed.", {{"ETag", Type::text, "of the file", true}})
      .fails_with({not_found});
  table.add(get, "/v1/status", Access::read, "The verdict, with its reasons, and the settings")
      .gives<api::CoordinatorStatus>(200, "How it stands.");
  table.add(get, "/v1/events", Access::read, "What happens: a stream, or with Accept: application/json a page")
      .paged()
      .asks({{"since", Type::text,
              "the position of the last event that is known; without one, a stream begins with what comes next"}})
      .reads_headers({{"Accept", Type::text, "application/json: a page of those that are kept"},
                      {"Last-Event-ID", Type::text, "as since, and never refused for where it points"}})
      .gives(200, "Events.", {{json_media, &table_of<api::EventList>()}, {"text/event-stream"}})
      .fails_with({compacted});
  table.add(post, "/v1/demo", Access::submit, "Give every member of a group numbers to add up, and launch that")
      .takes<api::DemoRequest>()
      .reads_headers({{"Idempotency-Key", Type::text, "the same key again is the same demonstration"}})
      .gives<api::Collective>(202, "It was launched.", {location, retry_after})
      .fails_with({unknown_group, unknown_worker, not_enough_workers, group_broken, epoch_fenced, busy,
                   worker_unreachable, idempotency_reused});
}

void add_workers(Table& table) {
  table.add(get, "/v1/links", Access::read, "The links that the workers have measured; at a worker those that it has")
      .asks({{"group", Type::text, "at the coordinator: those between its members, if its ranks follow them"}})
      .gives<api::MeasuredLinkList>(200, "All of them.")
      .fails_with({unknown_group});
  table.add(get, "/v1/links/traffic", Access::read, "What all ready workers have sent to each other")
      .asks({{"group", Type::text, "only its members"}})
      .gives<api::LinkTrafficList>(200, "What they say.")
      .fails_with({unknown_group});
  table.add(get, "/v1/workers", Access::read, "The workers that are known")
      .paged()
      .gives<api::WorkerList>(200, "A page of them.");
  table.add(post, "/v1/workers", Access::join, "Join, or join again")
      .takes<api::JoinRequest>()
      .gives<api::Worker>(201, "A new worker.", {location})
      .gives<api::Worker>(200, "It was known.", {location})
      .fails_with({epoch_fenced, worker_unreachable});
  table.add(get, "/v1/workers/{id}", Access::read, "One worker")
      .gives<api::Worker>(200, "It.")
      .fails_with({unknown_worker});
  table.add(delete_, "/v1/workers/{id}", Access::admin, "Take a worker out, whoever runs it")
      .asks({{"incarnation", Type::text, "only if it is still that one"}})
      .gives_nothing(204, "It is out; while its process runs it joins again.")
      .fails_with({unknown_worker, epoch_fenced});
  table.add(post, "/v1/workers/{id}/probe", Access::read, "Does anybody answer at the address that the worker gave?")
      .gives<api::Reachability>(200, "Whether, and if not, why.")
      .fails_with({unknown_worker});
  table.add(post, "/v1/workers/{id}/handover", Access::join, "Give a worker's shards to others")
      .asks({{"incarnation", Type::text, "only if it is still that one"},
             {"wait", Type::text, "answer when it has none any more, or after so long: 500ms, 30s"}})
      .gives<api::HandOverAnswer>(200, "What nobody could take.")
      .fails_with({unknown_worker, epoch_fenced});
  table.add(put, "/v1/workers/{id}/lease", Access::join, "Renew the lease")
      .takes<api::LeaseRequest>()
      .gives<api::LeaseAnswer>(200, "It was renewed.")
      .fails_with({unknown_worker, epoch_fenced});
  table.add(delete_, "/v1/workers/{id}/lease", Access::join, "Give the lease back: leave")
      .asks({{"incarnation", Type::text, "whose lease it is", true}})
      .gives_nothing(204, "It has left.")
      .fails_with({unknown_worker, epoch_fenced});
}

void add_groups(Table& table) {
  table.add(get, "/v1/groups", Access::read, "The groups").paged().gives<api::GroupList>(200, "A page of them.");
  table.add(get, "/v1/groups/{name}", Access::read, "One group: ranks, roles, and what is chosen for which size")
      .gives<api::Group>(200, "It. Members of groups above 256 have no roles here.")
      .fails_with({unknown_group});
  table.add(get, "/v1/groups/{name}/members/{rank}", Access::read, "One member, with its roles, also of a large group")
      .gives<api::Member>(200, "It.")
      .fails_with({unknown_group, unknown_worker});
  table.add(put, "/v1/groups/{name}", Access::submit, "Make a group, or its next epoch")
      .takes<api::GroupRequest>()
      .reads_headers({{"Idempotency-Key", Type::text, "the same key again is the same epoch"}})
      .gives<api::Group>(201, "A new group.", {location})
      .gives<api::Group>(200, "Its next epoch.", {location})
      .fails_with({unknown_worker, not_enough_workers, worker_unreachable, epoch_fenced, idempotency_reused});
  table.add(delete_, "/v1/groups/{name}", Access::submit, "Delete a group")
      .gives_nothing(204, "It is deleted, and its members have been told.")
      .fails_with({unknown_group});
}

// Problems of a collective that has not begun. The failure of one that has begun is in the collective, with status 200.
void can_be_refused(Operation& launch) {
  launch.fails_with({unknown_group, unknown_tensor, mismatch, epoch_fenced, group_broken, already_exists, busy,
                     cancelled, idempotency_reused, worker_unreachable, peer_lost, interrupted, deadline_exceeded});
}

void add_collectives(Table& table) {
  std::vector<Field> const launching{wait,
                                     {"validate_only", Type::boolean, "true: say what would be done, and do nothing"}};
  table.add(get, "/v1/collectives", Access::read, "Collectives, the latest first")
      .paged()
      .gives<api::CollectiveList>(200, "A page of them.");
  can_be_refused(table.add(post, "/v1/collectives", Access::submit, "Launch a collective")
                     .takes<api::CollectiveRequest>()
                     .asks(launching)
                     .reads_headers({{"Idempotency-Key", Type::text, "the same key again is the same collective"},
                                     {"Traceparent", Type::text, "W3C Trace Context: kept with it"}})
                     .gives<api::Collective>(200, "It has ended, or it was only validated.",
                                             {{"Location", Type::text, "where it is"}})
                     .gives<api::Collective>(202, "It was launched.", {location, retry_after}));
  table.add(get, "/v1/collectives/{id}", Access::read, "One collective, with every rank")
      .asks({wait})
      .gives<api::Collective>(200, "It.", {retry_after})
      .fails_with({unknown_collective});
  can_be_refused(table.add(put, "/v1/collectives/{id}", Access::submit, "Launch a collective under an id of yours")
                     .takes<api::CollectiveRequest>()
                     .asks(launching)
                     .reads_headers({{"Traceparent", Type::text, "W3C Trace Context: kept with it"}})
                     .gives<api::Collective>(200, "It has ended, or it was only validated.",
                                             {{"Location", Type::text, "where it is"}})
                     .gives<api::Collective>(202, "It was launched.", {location, retry_after}));
  table.add(delete_, "/v1/collectives/{id}", Access::submit, "Cancel: tensors stay as they were")
      .gives<api::Collective>(200, "It, as it stands now.", {retry_after})
      .fails_with({unknown_collective});
  table.add(get, "/v1/collectives/{id}/trace", Access::read, "What every rank did when, for trace viewers")
      .gives(200, "A trace in Chrome's trace event format.", {{json_media}})
      .fails_with({unknown_collective, unknown_run});
  table.add(post, "/v1/plans", Access::read, "A dry run: what would be chosen, why, and every move of it")
      .takes<api::PlanRequest>()
      .gives<api::PlanAnswer>(200, "The plan, verified.")
      .fails_with({unknown_group});
  table.add(post, "/v1/simulations", Access::read, "What algorithms would take on a network that is described")
      .takes<api::SimulationRequest>()
      .gives<api::SimulationAnswer>(200, "The fastest first.");
}

void add_parameters(Table& table) {
  std::vector<Field> const suspicion{{"suspect", Type::text, "a worker that the caller could not reach"},
                                     {"incarnation", Type::text, "of that worker"}};
  table.add(get, "/v1/parameters", Access::read, "The parameters; at a worker the shards that it has")
      .paged()
      .asks(suspicion)
      .gives<api::ParameterList>(200, "A page of them.");
  table.add(get, "/v1/parameters/{name}", Access::read, "One parameter, and who has its shards")
      .asks(suspicion)
      .asks({{"lost_shard", Type::integer, "that the worker itself says it does not have any more"}})
      .gives<api::Parameter>(200, "It.")
      .fails_with({unknown_parameter});
  table.add(put, "/v1/parameters/{name}", Access::submit, "Make a parameter")
      .takes<api::ParameterRequest>()
      .gives<api::Parameter>(201, "A new parameter.", {location})
      .gives<api::Parameter>(200, "It is there already.", {location})
      .fails_with({unknown_group, not_found, already_exists, not_enough_workers, worker_unreachable, epoch_fenced,
                   mismatch, cancelled, digest_mismatch, rows_exhausted, unsupported});
  table.add(delete_, "/v1/parameters/{name}", Access::submit, "Delete a parameter")
      .gives_nothing(204, "It is deleted.")
      .fails_with({unknown_parameter});
  table
      .add(post, "/v1/parameters/{name}/give-up", Access::submit,
           "Wait no longer for silent workers that have shards of the parameter: these are lost")
      .gives<api::Parameter>(200, "It, as it is now: lost, or as it was where nothing waited.")
      .fails_with({unknown_parameter});
  table.add(get, "/v1/parameters/{name}/shards", Access::read, "How far every shard is, asked of its owner")
      .gives<api::ShardStatusList>(200, "Those that answered.")
      .fails_with({unknown_parameter});
  table.add(post, "/v1/checkpoints", Access::submit, "Write parameters into files of the workers")
      .takes<api::CheckpointRequest>()
      .reads_headers({{"Idempotency-Key", Type::text, "the same key again is the same checkpoint"}})
      .gives<api::CheckpointAnswer>(201, "It is written.")
      .fails_with({unknown_parameter, worker_unreachable, parameter_lost, misdirected, busy, unsupported,
                   already_exists, digest_mismatch, deadline_exceeded, idempotency_reused});
}

}  // namespace

std::vector<Operation> coordinator_operations() {
  Table table(Service::coordinator);
  add_common_operations(table);
  add_page(table);
  add_workers(table);
  add_groups(table);
  add_collectives(table);
  add_parameters(table);
  return std::move(table).take();
}

}  // namespace chorus::http::openapi
