// Every message keeps every field when it is read and written. In the texts below no field has its default.
#include <doctest/doctest.h>

#include "http/api/cluster/constants.hpp"
#include "http/api/cluster/links.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/collectives/simulations.hpp"
#include "http/api/tensors/client_memory.hpp"
#include "http/api/tensors/tensors.hpp"
#include "http/json/json.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

std::string const locality = R"({"region":"eu","zone":"z1","rack":"r7","host":"h3"})";
std::string const gpus =
    R"([{"uuid":"GPU-00000000-0000-0000-0000-000000000000","pci_address":"0000:00:17.0","name":"V100",)"
    R"("memory_gbyte_per_s":900.5,"pcie_generation":3,"pcie_width":16,)"
    R"("nvlinks":[{"to":"0000:00:18.0","is_switch":true,"links":2,"gbyte_per_s":50}]}])";
std::string const schedule = R"({"segment_bytes":8192,"window":9})";
std::string const problem =
    R"({"type":"/problems/peer_lost","title":"A peer was lost","status":502,"detail":"rank 3 died","code":"peer_lost",)"
    R"("retryable":true,"retry_after_s":2,"ranks":[3],"errors":[{"pointer":"/x","detail":"y"}]})";
std::string const worker = R"({"id":"w","incarnation":"00","url":"http://w:1","locality":)" + locality +
                           R"(,"version":"0.1","state":"ready","lease_ms":3000,"heard_ms_ago":17,"groups":["g","h"],)" +
                           R"("gpus":)" + gpus + R"(,"takeovers":18,"rivals":["http://w:1","http://w:2"]})";
std::string const group =
    R"({"name":"g","epoch":3,"state":"degraded","members":[{"rank":1,"worker":"w","incarnation":"ab","url":"http://w:1",)"
    R"("locality":)" +
    locality +
    R"(,"roles":[{"algorithm":"tree","role":"interior","sends_to":[0],"receives_from":[3,4]}]}],)"
    R"("lost":["x"],"requested":{"size":2,"on_failure":"shrink","min_ranks":1},"order":"measured",)"
    R"("stretch":{"arrival_order":1.5,"assigned":0.1},"selection":[{"op":"all_reduce","max_bytes":4096,)"
    R"("algorithm":"torus_2d","root":1,"arity":3,"algorithm_shape":[2,4],"reason":"small"},{"op":"all_reduce",)"
    R"("algorithm":"ring","root":0,"arity":2,"algorithm_shape":[],"reason":"large"}],)"
    R"("slow":[{"rank":1,"worker":"w","late_seconds":0.5,"share":0.75}]})";
std::string const report =
    R"({"run":5,"rank":2,"worker":"w","state":"failed","started_us":123,"seconds":0.25,"wait_seconds":1e-05,)"
    R"("bytes_sent":18446744073709551615,"bytes_received":2,"steps":6,"input_digest":"aa","output_digest":"bb","version":4,)"
    R"("error":)" +
    problem + "}";
std::string const collective_request =
    R"({"group":"g","op":"reduce","tensor":"t","output":"u","reduce":"max","counts":[1,2],"local_algorithm":"tree",)"
    R"("algorithm":"ring","root":1,"arity":4,"algorithm_shape":[2,2],"epoch":2,)"
    R"("timeout_ms":5,"in_place":true,"on_failure":"shrink","reproducible":true,"schedule":)" +
    schedule + "}";
std::string const considered =
    R"({"algorithm":"ring","root":1,"arity":3,"algorithm_shape":[],"predicted_seconds":0.001,"rounds":6,"bytes_per_rank":12})";
std::string const lower_bound = R"({"rounds":2,"bytes_per_rank":6})";
std::string const collective =
    R"({"id":"c","state":"failed","request":)" + collective_request +
    R"(,"run":9,"epoch":2,"dtype":"f32","shape":[4096,0],"bytes":16384,"timeout_ms":5,"algorithm":"ring","root":1,"arity":3,)"
    R"("algorithm_shape":[],"local_algorithm":"tree","reason":"why","considered":[)" +
    considered + R"(],"predicted_seconds":0.5,"lower_bound":)" + lower_bound +
    R"(,"created_at":"2026-01-01T00:00:00Z","seconds":2.5,"arrival_skew_seconds":0.125,"ranks":[{"rank":1,"worker":"w",)"
    R"("parts":2,"device":"cuda:0","state":"failed","late_seconds":0.5,"report":)" +
    report +
    R"(},{"rank":2,"worker":"v","parts":0,"state":"pending","late_seconds":0.25}],)"
    R"("attempts":[{"run":8,"epoch":1,"error":)" +
    problem + R"(}],"error":)" + problem + "}";
std::string const tensor = R"({"name":"grad/0","dtype":"bf16","shape":[2,3],"version":7,"bytes":12,"device":"cuda:1"})";

// Returns `text` after decoding and encoding.
template <class Message>
std::string echoed(std::string const& text) {
  auto const message = decode<Message>(text);
  REQUIRE_MESSAGE(message.has_value(), message.error().detail);
  return encode(*message);
}

template <class List>
void check_list(std::string const& item) {
  auto const with_cursor = R"({"items":[)" + item + "," + item + R"(],"next_cursor":"n"})";
  CHECK(echoed<List>(with_cursor) == with_cursor);
  CHECK(echoed<List>(R"({"items":[]})") == R"({"items":[]})");
}

}  // namespace

TEST_CASE("messages about workers and leases read back as written") {
  auto const join = R"({"id":"w","incarnation":"00","url":"http://w:1","locality":)" + locality +
                    R"(,"version":"0.1","gpus":)" + gpus + "}";
  CHECK(echoed<api::JoinRequest>(join) == join);
  CHECK(echoed<api::Worker>(worker) == worker);
  CHECK(echoed<api::LeaseRequest>(R"({"incarnation":"ff"})") == R"({"incarnation":"ff","troubles":[],"calls":[]})");
  auto const trouble =
      R"({"incarnation":"ff","troubles":[{"group":"g","epoch":3,"accused":[{"worker":"w","incarnation":"ee"}]}],)"
      R"("calls":[{"group":"g","epoch":3,"calls":7,"seconds":0.5}]})";
  CHECK(echoed<api::LeaseRequest>(trouble) == trouble);
  CHECK(echoed<api::LeaseAnswer>(R"({"lease_ms":12})") == R"({"lease_ms":12})");
  check_list<api::WorkerList>(worker);
}

TEST_CASE("messages about groups read back as written") {
  auto const listed = R"({"workers":["a","b"],"on_failure":"shrink","min_ranks":2})";
  CHECK(echoed<api::GroupRequest>(listed) == listed);
  auto const measured = R"({"size":4,"on_failure":"fail","min_ranks":1,"order":"measured"})";
  CHECK(echoed<api::GroupRequest>(measured) == measured);
  CHECK(echoed<api::GroupRequest>(R"({"size":4})") == R"({"size":4,"on_failure":"fail","min_ranks":1})");
  CHECK(echoed<api::GroupRequest>("{}") == R"({"on_failure":"fail","min_ranks":1})");
  CHECK(echoed<api::Group>(group) == group);
  auto const assignment = R"({"group":)" + group + R"(,"worker":"w","incarnation":"ab","token":"cd"})";
  CHECK(echoed<api::GroupAssignment>(assignment) == assignment);
  check_list<api::GroupList>(group);
}

TEST_CASE("messages about runs read back as written") {
  auto const request =
      R"({"run":5,"group":"g","epoch":2,"token":"cd","op":"all_reduce","algorithm":"tree","root":1,"arity":3,)"
      R"("algorithm_shape":[4],"rank":1,"members":[{"rank":0,"worker":"v","incarnation":"aa","url":"http://v:1"}],)"
      R"("tensor":"t","version":8,"dtype":"i64",)"
      R"("elements":4294967296,"counts":[1],"receive_counts":[2],)"
      R"("result":{"tensor":"u","shape":[3],"version":0},)"
      R"("parts":2,"local_algorithm":"ring","contributions":9,"reduce":"avg","in_place":true,"digests":false,"schedule":)" +
      schedule + R"(,"timeout_ms":4})";
  CHECK(echoed<api::RunRequest>(request) == request);
  CHECK(echoed<api::RunReport>(report) == report);
  CHECK(echoed<api::CommitAnswer>(R"({"version":3})") == R"({"version":3})");
  auto const call =
      R"({"sequence":7,"epoch":8,"tensor":"t","tensors":["a","b"],"output":"u","dtype":"f32","shape":[2],"root":1,"counts":[1],)"
      R"("receive_counts":[2],"reduce":"min","in_place":true,"algorithm":"ring","local_algorithm":"tree",)"
      R"("contributions":3,"timeout_ms":9,"schedule":)" +
      schedule + "}";
  CHECK(echoed<api::LocalCall>(call) == call);
  auto const local =
      R"({"group":"g","epoch":1,"sequence":2,"next_sequence":8,"rank":3,"algorithm":"ring","seconds":0.5,"bytes_sent":4,)"
      R"("bytes_received":5,"version":6,"tensors":7})";
  CHECK(echoed<api::LocalReport>(local) == local);
}

TEST_CASE("messages about regions, placements and links read back as written") {
  auto const asked = R"({"key":"/psm_1","offset":4096,"bytes":18446744073709551615})";
  CHECK(echoed<api::RegionRequest>(asked) == asked);
  std::string const region = R"({"name":"r","key":"/psm_1","offset":1,"bytes":2,"state":"ready","tensors":["t"]})";
  CHECK(echoed<api::Region>(region) == region);
  check_list<api::RegionList>(region);
  auto const on_gpu = R"({"handle":"AAAA","device":"cuda:1","offset":256,"bytes":2})";
  CHECK(echoed<api::GpuRegionRequest>(on_gpu) == on_gpu);
  std::string const gpu_region =
      R"({"name":"r","device":"cuda:1","offset":256,"bytes":2,"state":"ready","tensors":["t"]})";
  CHECK(echoed<api::GpuRegion>(gpu_region) == gpu_region);
  check_list<api::GpuRegionList>(gpu_region);
  auto const placement = R"({"dtype":"f32","shape":[2,3],"shm":{"region":"r","offset":8}})";
  CHECK(echoed<api::Placement>(placement) == placement);
  std::string const link =
      R"({"worker":"w","link":"tcp","connections":1,"why_not_shm":"no","why_not_ipc":"no","sent_bytes":2,)"
      R"("received_bytes":3,"send_busy_seconds":0.5})";
  CHECK(echoed<api::PeerLink>(link) == link);
  check_list<api::PeerLinkList>(link);
}

TEST_CASE("messages about collectives read back as written") {
  CHECK(echoed<api::CollectiveRequest>(collective_request) == collective_request);
  CHECK(echoed<api::Collective>(collective) == collective);
  check_list<api::CollectiveList>(collective);
}

TEST_CASE("messages about plans read back as written") {
  auto const request =
      R"({"group":"g","ranks":4,"localities":["host=a","host=b"],"topology":"flat:4",)"
      R"("links":{"bandwidth_gbyte_per_s":[[null,0.5],[2,null]],"latency_us":[[null,1.5],[3,null]]},"op":"reduce",)"
      R"("bytes":17,"dtype":"f64",)"
      R"("algorithm":"tree","root":1,"arity":3,"algorithm_shape":[2],"reproducible":true})";
  CHECK(echoed<api::PlanRequest>(request) == request);
  auto const answer =
      R"({"algorithm":"ring","root":1,"arity":3,"algorithm_shape":[],"reason":"why","predicted_seconds":0.5,"considered":[)" +
      considered + R"(],"lower_bound":)" + lower_bound +
      R"(,"verified":true,"verification":"yes","rounds":[[{"op":"send","rank":1,"peer":2,)"
      R"("chunk":3,"chunks":4}],[],[{"op":"recv","rank":2,"peer":1,"chunk":3,"chunks":2}]],"order":[0,2,1],)"
      R"("stretch":{"arrival_order":2.5,"assigned":1}})";
  CHECK(echoed<api::PlanAnswer>(answer) == answer);
}

TEST_CASE("messages about simulations read back as written") {
  auto const request =
      R"({"ranks":8,"topology":"hosts:2x4","overrides":"rack=25us,25Gbit/s",)"
      R"("links":{"bandwidth_gbyte_per_s":[[null]],"latency_us":[[null]]},"op":"reduce","bytes":17,"dtype":"f64",)"
      R"("algorithm":"tree","root":1,"arity":3,"algorithm_shape":[2],"reproducible":true})";
  CHECK(echoed<api::SimulationRequest>(request) == request);
  auto const answer =
      R"({"op":"reduce","ranks":8,"bytes":17,"topology":"hosts:2x4","items":[{"algorithm":"tree","root":1,"arity":3,)"
      R"("algorithm_shape":[2],"seconds":0.5,"rounds":7,"bytes_per_rank":9,"bottleneck":"latency"}],)"
      R"("lower_bound":{"rounds":3,"bytes_per_rank":2},"order":[0,1],"stretch":{"arrival_order":2.5,"assigned":1}})";
  CHECK(echoed<api::SimulationAnswer>(answer) == answer);
}

TEST_CASE("the model's constants read back as written") {
  std::string const link = R"({"alpha_s":1.5e-05,"beta_s_per_byte":2.5e-10})";
  std::string const rates = R"({"encode_s_per_byte":1e-10,"decode_s_per_byte":2e-10,"add_s_per_byte":3e-10})";
  auto const text = R"({"level":{"host":)" + link + R"(,"rack":)" + link + R"(,"zone":)" + link + R"(,"region":)" +
                    link + R"(,"world":)" + link + R"(},"gamma_s_per_byte":1.25e-10,"cache_bytes":1048576,)" +
                    R"("cached_gamma_s_per_byte":2e-11,"codec":{"bf16":)" + rates + R"(,"f16":)" + rates +
                    R"(,"int8":)" + rates + R"(,"fp8_e4m3":)" + rates + R"(},"segment_bytes":65536,)" +
                    R"("uplink_s_per_byte":{"host":0.1,"rack":0.2,"zone":0.3,"region":0.4},"host_cores":2.5,)" +
                    R"("message_cpu_s":1e-06,"byte_cpu_s":1e-10,"wake_s":1e-05})";
  CHECK(echoed<api::ModelConstants>(text) == text);
  CHECK(decode<api::ModelConstants>(R"({"level":{"host":{"alpha_s":1}}})").has_error());
}

TEST_CASE("messages about tensors read back as written") {
  CHECK(echoed<api::TensorInfo>(tensor) == tensor);
  check_list<api::TensorList>(tensor);
}

TEST_CASE("encode leaves absent optional fields out of a message") {
  CHECK(encode(api::RunReport{}).find("error") == std::string::npos);
  CHECK(encode(api::RunReport{}).find("digest") == std::string::npos);
  CHECK(encode(api::WorkerList{}) == R"({"items":[]})");
}
