#include "http/api/cluster/links.hpp"
#include "http/api/collectives/flight.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/tensors/client_memory.hpp"
#include "http/api/tensors/tensors.hpp"
#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {
namespace {

using enum Method;
using enum ProblemCode;

std::vector<Field> conditions() {
  return {{"If-Match", Type::text, "only if the tensor has one of these tags; * only if there is one"},
          {"If-None-Match", Type::text, "* only if there is none"}};
}

std::vector<Field> tensor_fields() {
  return {{"ETag", Type::text, "never used for other bytes; not of tensors in memory of clients"},
          {"Tensor-Dtype", Type::text, "f32, ...", true},
          {"Tensor-Shape", Type::text, "4096,1024", true},
          {"Tensor-Version", Type::integer, "one more with every change", true},
          {"Tensor-Device", Type::text, "where it lies: cpu, cuda:0, ...", true}};
}

void add_tensors(Table& table) {
  auto uploaded = tensor_fields(), part = tensor_fields();
  uploaded.push_back({"Location", Type::text, "where it is", true});
  part.push_back({"Content-Range", Type::text, "which part", true});
  auto const wanted_digest = Field{"Repr-Digest", Type::text, "where it was wanted"};
  auto whole = tensor_fields();
  whole.push_back(wanted_digest);
  part.push_back(wanted_digest);
  table.add(get, "/v1/tensors", Access::read, "The tensors that this worker has")
      .paged()
      .asks({{"prefix", Type::text, "only those whose names begin so"}})
      .gives<api::TensorList>(200, "A page of them.");
  table.add(get, "/v1/tensors/{name...}", Access::read, "The bytes of a tensor, little-endian and row-major")
      .reads_headers({{"Range", Type::text, "bytes=a-b"},
                      {"If-Range", Type::text, "a tag: all of it, where that is not the tensor's any more"},
                      {"If-Match", Type::text, "only if the tensor has one of these tags"},
                      {"If-None-Match", Type::text, "304 if it has one of these tags"},
                      {"Want-Repr-Digest", Type::text, "sha-256=1"}})
      .gives(200, "All of it.", {{octets_media}}, whole)
      .gives(206, "The range.", {{octets_media}}, part)
      .gives_nothing(304, "It has not changed.", tensor_fields())
      .fails_with({unknown_tensor, region_damaged, precondition_failed, range_not_satisfiable, device_failed});
  auto& upload = table.add(put, "/v1/tensors/{name...}", Access::submit,
                           "Upload a tensor, or say where in a client's shared memory it lies");
  upload.takes_octets()
      .takes<api::Placement>()
      .reads_headers({{"Tensor-Dtype", Type::text, "f32, ...; with bytes"},
                      {"Tensor-Shape", Type::text, "4096,1024; with bytes"},
                      {"Tensor-Device", Type::text, "where it is to lie: cpu, or a GPU of the worker, cuda:0"},
                      {"Content-Digest", Type::text, "sha-256=:..:, of the bytes"}})
      .reads_headers(conditions())
      .gives<api::TensorInfo>(200, "Its next version.", tensor_fields())
      .gives<api::TensorInfo>(201, "A new tensor.", uploaded)
      .fails_with({busy, precondition_failed, unsupported_media_type, length_mismatch, digest_mismatch, length_required,
                   unknown_region, region_damaged, device_failed});
  table.add(delete_, "/v1/tensors/{name...}", Access::submit, "Delete a tensor")
      .reads_headers(conditions())
      .gives_nothing(204, "It is deleted.")
      .fails_with({unknown_tensor, busy, precondition_failed});
}

void add_client_memory(Table& table) {
  table.add(get, "/v1/shm/system", Access::read, "The shared memory that clients have registered")
      .paged()
      .gives<api::RegionList>(200, "A page of it.");
  table.add(get, "/v1/shm/system/{name}", Access::read, "One region, and the tensors that lie in it")
      .gives<api::Region>(200, "It.")
      .fails_with({unknown_region});
  table.add(put, "/v1/shm/system/{name}", Access::submit, "Register a POSIX shared memory object")
      .takes<api::RegionRequest>()
      .gives<api::Region>(201, "A new region.", {{"Location", Type::text, "where it is", true}})
      .gives<api::Region>(200, "It is registered already.")
      .fails_with({region_in_use});
  table.add(delete_, "/v1/shm/system/{name}", Access::submit, "Forget a region")
      .gives_nothing(204, "It is forgotten.")
      .fails_with({unknown_region, region_in_use});
}

void add_client_gpu_memory(Table& table) {
  table.add(get, "/v1/shm/cuda", Access::read, "The memory of GPUs that clients have registered")
      .paged()
      .gives<api::GpuRegionList>(200, "A page of it.");
  table.add(get, "/v1/shm/cuda/{name}", Access::read, "One region on a GPU, and the tensors that lie in it")
      .gives<api::GpuRegion>(200, "It.")
      .fails_with({unknown_region});
  table.add(put, "/v1/shm/cuda/{name}", Access::submit, "Register memory of a GPU by its IPC handle")
      .takes<api::GpuRegionRequest>()
      .gives<api::GpuRegion>(201, "A new region.", {{"Location", Type::text, "where it is", true}})
      .gives<api::GpuRegion>(200, "It is registered already.")
      .fails_with({region_in_use, device_failed});
  table.add(delete_, "/v1/shm/cuda/{name}", Access::submit, "Forget a region on a GPU")
      .gives_nothing(204, "It is forgotten.")
      .fails_with({unknown_region, region_in_use});
}

void add_flight(Table& table) {
  table.add(get, "/v1/flight", Access::read, "The last runs, the latest first")
      .paged()
      .asks({{"run", Type::text, "only this one: a number, or 16 hexadecimal digits"},
             {"instructions", Type::boolean, "what was done when; true with a run, false otherwise, unless given"}})
      .gives<api::FlightList>(200, "A page of them.");
  table.add(get, "/v1/progress", Access::read, "Where the runs stand that are under way")
      .gives<api::ProgressList>(200, "All of them.");
  table.add(get, "/v1/runs/{run}/progress", Access::read, "Where a run stands")
      .gives<api::RunProgress>(200, "There.")
      .fails_with({unknown_run});
  table.add(get, "/v1/clock", Access::read, "The worker's monotonic clock").gives<api::ClockReading>(200, "Now.");
  table.add(get, "/v1/links", Access::read, "The links that this worker has")
      .gives<api::PeerLinkList>(200, "All of them.");
}

void add_groups(Table& table) {
  table.add(get, "/v1/groups", Access::read, "The groups of which this worker is a member")
      .paged()
      .gives<api::GroupList>(200, "A page of them.");
  table.add(get, "/v1/groups/{name}", Access::read, "One group, as this member sees it")
      .gives<api::Group>(200, "It.")
      .fails_with({unknown_group});
  table.add(put, "/v1/groups/{name}", Access::join, "From the coordinator: the group's next epoch")
      .takes<api::GroupAssignment>()
      .gives_nothing(204, "It has been taken.")
      .fails_with({epoch_fenced});
  table.add(post, "/v1/groups/{name}/{op}", Access::submit, "Take part in an operation: every member calls it")
      .takes<api::LocalCall>()
      .reads_headers({{"Idempotency-Key", Type::text, "the same key again is the same call, and has its answer"}})
      .gives<api::LocalReport>(200, "It has succeeded.")
      .fails_with({unknown_group, unknown_tensor, mismatch, epoch_fenced, plan_mismatch, group_broken, out_of_order,
                   idempotency_reused, busy, cancelled, region_damaged, digest_mismatch, unsupported, peer_lost,
                   corrupt_frame, deadline_exceeded, device_failed, not_found});
}

}  // namespace

std::vector<Operation> worker_operations() {
  Table table(Service::worker);
  add_common_operations(table);
  table.add(get, "/", Access::read, "Who this worker is, and where to look").gives(200, "That.", {{json_media}});
  add_tensors(table);
  add_client_memory(table);
  add_client_gpu_memory(table);
  add_groups(table);
  add_flight(table);
  add_parameter_data_operations(table);
  add_member_operations(table);
  return std::move(table).take();
}

}  // namespace chorus::http::openapi
