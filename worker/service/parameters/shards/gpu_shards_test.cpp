// Shards of parameters on a worker's GPU, over HTTP; the test is coordinator and client.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"
#include "worker/service/testing/doubles.hpp"

using namespace chorus;
using namespace chorus::service::testing;

namespace {

constexpr std::size_t elements = 5000;

std::string assignment(LiveWorker const& worker, std::string const& device, std::uint32_t epoch,
                       std::optional<api::CheckpointName> checkpoint = std::nullopt) {
  api::ShardAssignment order;
  order.parameter.name = "w";
  order.parameter.dtype = "bf16";
  order.parameter.shape = {elements / 5, 5};
  order.parameter.group = "g";
  order.parameter.optimizer = api::parse_optimizer(R"({"name":"adam"})").value();
  order.parameter.reduce = "sum";
  order.parameter.nonfinite = "reject";
  order.parameter.device = device;
  order.end = elements;
  order.epoch = epoch;
  order.role = "owner";
  order.worker = worker.identity().id;
  order.incarnation = api::to_hex(worker.identity().incarnation);
  order.fresh = true;
  order.checkpoint = std::move(checkpoint);
  return http::encode(order);
}

Answer place(LiveWorker const& worker, std::string const& order) {
  return worker.put("/v1/parameters/w/shards/0", order);
}

// f32 for a parameter of bf16: numbers near 1.
int push(LiveWorker const& worker, int sequence, std::string const& path = "gradient") {
  std::vector<float> gradient(elements);
  for (std::size_t i = 0; i < elements; ++i)
    gradient[i] = static_cast<float>((i * 29 + static_cast<std::size_t>(sequence) * 7) % 64) / 64 - 0.5F;
  httplib::Client client("127.0.0.1", worker.port());
  auto const answer = client.Post(
      "/v1/parameters/w/" + path + "?shard=0",
      {{"Chorus-Client", "c"}, {"Chorus-Sequence", std::to_string(sequence)}, {"Tensor-Dtype", "f32"}},
      reinterpret_cast<char const*>(gradient.data()), gradient.size() * sizeof(float), "application/octet-stream");
  return answer ? answer->status : 0;
}

std::string values(LiveWorker const& worker) {
  auto const answer = worker.get("/v1/parameters/w/value?shard=0");
  CHECK(answer.status == 200);
  return answer.body;
}

class Directory {
 public:
  Directory() : path_(std::filesystem::temp_directory_path() / ("chorus-gpu-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(Directory const&) = delete;
  Directory& operator=(Directory const&) = delete;
  [[nodiscard]] std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Writes a checkpoint as the coordinator does.
void write_checkpoint(LiveWorker const& worker) {
  auto const number = worker.post("/v1/checkpoints/c/numbers", "").json().at("number").to_number<int>();
  boost::json::object const wanted{{"number", number}, {"shards", {{{"parameter", "w"}, {"shard", 0}}}}};
  auto const file = worker.post("/v1/checkpoints/c/files", boost::json::serialize(wanted));
  REQUIRE(file.status == 200);
  boost::json::object const commit{{"number", number}, {"keep", 0}, {"parts", {file.json().at("manifest")}}};
  REQUIRE(worker.post("/v1/checkpoints/c/commit", boost::json::serialize(commit)).status / 100 == 2);
}

}  // namespace

TEST_CASE("a shard on a GPU goes on in the host's memory from its checkpoint, and back, to the same bits") {
  Directory const directory;
  auto options = test_options();
  options.checkpoint_directory = directory.name();
  GpuWorker worker(1, options);
  REQUIRE(place(worker, assignment(worker, "cuda", 1)).status == 204);
  auto const stepped = [&worker](std::size_t bytes) {
    auto const line = "\nchorus_gpu_stepped_bytes_total{device=\"cuda:0\"} " + std::to_string(bytes) + "\n";
    return worker.metrics().find(line) != std::string::npos;
  };
  CHECK(stepped(0));
  CHECK(push(worker, 0) == 200);
  CHECK(stepped(elements * sizeof(float)));
  write_checkpoint(worker);
  CHECK(push(worker, 1) == 200);
  CHECK(push(worker, 1, "push_pull") == 200);
  auto const expected = values(worker);
  CHECK(expected.size() == elements * 2);
  for (auto const& [device, epoch] : {std::pair("cpu", 2U), std::pair("cuda", 3U)}) {
    auto const placed = place(worker, assignment(worker, device, epoch, api::CheckpointName{"c", std::nullopt}));
    REQUIRE_MESSAGE(placed.status == 204, placed.body);
    CHECK(push(worker, 1) == 200);
    CHECK((values(worker) == expected));
  }
}

TEST_CASE("a worker without a GPU refuses a shard for a GPU, and says why") {
  LiveWorker worker;
  auto const refused = place(worker, assignment(worker, "cuda", 1));
  CHECK(refused.code() == "unsupported");
  CHECK(refused.json().at("detail") == "a test has none");
  CHECK(worker.get("/v1/parameters/w/shards/0").status == 404);
}

TEST_CASE("a shard whose GPU is lost is reported as moving, and everything else goes on") {
  GpuWorker worker;
  REQUIRE(place(worker, assignment(worker, "cuda", 1)).status == 204);
  REQUIRE(push(worker, 0) == 200);
  worker.gpu().fail_after(1, devices::GpuErrc::lost);
  CHECK(push(worker, 1) == 503);
  CHECK(push(worker, 1) == 421);
  CHECK(worker.get("/v1/parameters/w/value?shard=0").code() == "misdirected");
  CHECK(worker.get("/v1/parameters/w/shards/0").json().at("complete") == false);
  CHECK(worker.get("/readyz").status == 503);
  CHECK(worker.put_bytes("x", "on the host").status == 201);
}
