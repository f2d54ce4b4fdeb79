// Tensors and parameters on GPUs, and clients' memory there, between processes: on doubles, or on the host's GPUs.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "tests/support/fleets/gpu_programs.hpp"
#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

using Floats = std::vector<float>;

Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1000);
  Floats values(count);
  for (auto& value : values) value = normal(random);
  return values;
}

// Workers w0, w1, ... with GPUs, each on a separate host, and a group of all.
struct Fleet {
  explicit Fleet(std::size_t count, std::vector<std::string> const& flags = {}) : cluster(0) {
    for (std::size_t i = 0; i < count; ++i)
      cluster.add_worker("w" + std::to_string(i), "host=h" + std::to_string(i), flags, gpu_worker());
    cluster.make_group("g");
  }
  json::value run(json::object request) {
    request.emplace("group", "g");
    auto collective = cluster.run(std::move(request));
    INFO(json::serialize(collective));
    CHECK(collective.at("state") == "succeeded");
    return collective;
  }
  Cluster cluster;
};

// Memory of a client's process, whose floats are all `value`.
class LendingClient {
 public:
  LendingClient(std::size_t count, int value)
      : process_({binary(gpu_client()), std::to_string(count), std::to_string(value)}), handle_(process_.read_line()) {}
  ~LendingClient() { process_.signal(SIGTERM); }
  [[nodiscard]] std::string request(std::size_t bytes) const {
    return R"({"handle":")" + handle_ + R"(","device":"cuda:0","bytes":)" + std::to_string(bytes) + "}";
  }
  [[nodiscard]] std::string look() {
    process_.signal(SIGUSR1);
    return process_.read_line();
  }
  void free() {
    process_.signal(SIGUSR2);
    CHECK(process_.read_line() == "freed");
  }

 private:
  Process process_;
  std::string const handle_;
};

// Work of a rank's queues by name: [begin, end) in us.
using Spans = std::map<std::string, std::vector<std::pair<double, double>>>;
Spans spans_of(json::value const& trace, int rank) {
  Spans spans;
  for (auto const& event : trace.at("traceEvents").as_array()) {
    auto const& span = event.as_object();
    if (!span.contains("cat") || span.at("cat") != "gpu" || span.at("pid").to_number<int>() != rank) continue;
    auto const begin = span.at("ts").to_number<double>();
    spans[std::string(span.at("name").as_string())].emplace_back(begin, begin + span.at("dur").to_number<double>());
  }
  return spans;
}
bool overlap(std::vector<std::pair<double, double>> const& some, std::vector<std::pair<double, double>> const& others) {
  return std::any_of(some.begin(), some.end(), [&others](auto const& one) {
    return std::any_of(others.begin(), others.end(),
                       [&one](auto const& other) { return one.first < other.second && other.first < one.second; });
  });
}

std::string in_region(std::size_t count) {
  return R"({"dtype":"f32","shape":[)" + std::to_string(count) + R"(],"shm":{"region":"mine","offset":0}})";
}

}  // namespace

TEST_CASE("a tensor on a GPU is read back whole and in ranges, and moves between GPU and host") {
  Fleet fleet(1);
  auto& worker = fleet.cluster.worker(0);
  CHECK(worker.get("/v1").json().at("gpus").at(0).at("device") == "cuda:0");
  auto const values = random_floats(5'000'003, 1);
  auto const put = put_on(worker, "cuda:0", "x", values);
  REQUIRE_MESSAGE(put.status == 201, put.body);
  CHECK(put.header("Tensor-Device") == "cuda:0");
  CHECK(worker.get_tensor<float>("x") == values);
  httplib::Client client(worker.url);
  auto const part = client.Get("/v1/tensors/x", {{"Range", "bytes=4000000-4000011"}});
  CHECK(part->status == 206);
  CHECK(part->body == ParameterClient::bytes(values).substr(4'000'000, 12));
  CHECK(put_on(worker, "cpu", "x", values).header("Tensor-Device") == "cpu");
  CHECK(worker.get_tensor<float>("x") == values);
  CHECK(put_on(worker, "cuda:0", "x", {1}).status == 200);
  CHECK(worker.get_tensor<float>("x") == Floats{1});
}

TEST_CASE("unknown devices and too large tensors are refused, and the worker goes on") {
  Fleet fleet(1, {"--gpu-memory-bytes", "4194304"});
  auto& worker = fleet.cluster.worker(0);
  for (auto const* device : {"cuda:-1", "cuda:999", "gpu0"}) CHECK(put_on(worker, device, "x", {1}).status == 400);
  auto const refused = put_on(worker, "cuda:0", "large", Floats(2 << 20, 1));
  CHECK(refused.status == 503);
  CHECK_MESSAGE(refused.body.find("of the arena's 4194304 in use") != std::string::npos, refused.body);
  CHECK(put_on(worker, "cuda:0", "small", {1, 2}).status == 201);
  CHECK(worker.get_tensor<float>("small") == Floats{1, 2});
}

TEST_CASE("with an arena larger than the device's memory, tensors are refused with the driver's reason") {
  Fleet fleet(1, {"--gpu-memory-bytes", "1099511627776"});
  auto const refused = put_on(fleet.cluster.worker(0), "cuda:0", "x", {1});
  CHECK(refused.status == 503);
  MESSAGE(refused.body);
  CHECK(fleet.cluster.worker(0).get("/readyz").status == 200);
  CHECK(put_on(fleet.cluster.worker(0), "cpu", "x", {1}).status == 201);
}

TEST_CASE("reproducible sums of groups of GPUs, of hosts and of both have the same bits") {
  Fleet fleet(3);
  for (auto const* op : {"all_reduce", "reduce_scatter"}) {
    std::vector<std::vector<Floats>> results;
    for (std::string const places : {"hhh", "ggg", "ghg", "hgh"}) {
      for (std::size_t w = 0; w < 3; ++w)
        REQUIRE(put_on(fleet.cluster.worker(w), places[w] == 'g' ? "cuda:0" : "cpu", "x",
                       random_floats(300'007, static_cast<unsigned>(w)))
                        .status /
                    100 ==
                2);
      fleet.run({{"op", op}, {"tensor", "x"}, {"reproducible", true}});
      results.emplace_back();
      for (std::size_t w = 0; w < 3; ++w) results.back().push_back(fleet.cluster.worker(w).get_tensor<float>("x"));
    }
    for (auto const& result : results) CHECK((result == results.front()));
  }
}

TEST_CASE("a staged run copies in, computes and copies out at the same time, as its trace shows") {
  Fleet fleet(3, {"--gpu-ipc", "off"});
  for (std::size_t w = 0; w < 3; ++w)
    REQUIRE(put_on(fleet.cluster.worker(w), "cuda:0", "x", Floats(4 << 20, 1)).status == 201);
  auto const collective = fleet.run({{"op", "all_reduce"}, {"tensor", "x"}, {"algorithm", "ring"}});
  for (std::size_t w = 0; w < 3; ++w) CHECK((fleet.cluster.worker(w).get_tensor<float>("x") == Floats(4 << 20, 3)));
  auto const trace =
      fleet.cluster.coordinator.get("/v1/collectives/" + std::string(collective.at("id").as_string()) + "/trace");
  REQUIRE_MESSAGE(trace.status == 200, trace.body);
  for (int rank = 0; rank < 3; ++rank) {
    auto const spans = spans_of(trace.json(), rank);
    for (auto const* lane : {"to the GPU", "kernel", "from the GPU"}) REQUIRE(spans.contains(lane));
    // The double executes one piece of work at a time.
    if (on_real_gpu()) CHECK(overlap(spans.at("to the GPU"), spans.at("from the GPU")));
  }
  for (std::size_t w = 0; w < 3; ++w) {
    auto const& worker = fleet.cluster.worker(w);
    for (auto const* direction : {"in", "out"})
      CHECK(worker.metric(R"(chorus_gpu_copied_bytes_total{device="cuda:0",direction=")" + std::string(direction) +
                          "\"}") > 16e6);
    CHECK(worker.metric(R"(chorus_gpu_kernels_total{device="cuda:0"})") > 0);
  }
}

TEST_CASE("a parameter on GPUs has the same bits as one in host memory") {
  Fleet fleet(2);
  for (std::string const device : {"cuda", "cpu"}) {
    auto const made = fleet.cluster.coordinator.put("/v1/parameters/" + device,
                                                    R"({"group":"g","shape":[100003],"shards":2,"device":")" + device +
                                                        R"(","optimizer":{"name":"adam","learning_rate":0.01}})");
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }
  ParameterClient client(fleet.cluster.worker(0).url, "c");
  for (unsigned push = 0; push < 5; ++push)
    for (auto const* name : {"cuda", "cpu"})
      REQUIRE(client.push(name, ParameterClient::bytes(random_floats(100'003, push))).status == 200);
  auto const on_gpu = client.pull("cuda"), on_host = client.pull("cpu");
  CHECK(on_gpu.status == 200);
  CHECK((on_gpu.body == on_host.body));
}

TEST_CASE("a client's GPU memory is reduced in place") {
  constexpr std::size_t count = 1 << 20;
  Cluster cluster(0);
  for (std::string const n : {"0", "1"}) cluster.add_worker("w" + n, "host=h0", {"--allow-client-shm"}, gpu_worker());
  cluster.make_group("g");
  LendingClient client(count, 1);
  auto const lent = cluster.worker(0).put("/v1/shm/cuda/mine", client.request(count * 4));
  REQUIRE_MESSAGE(lent.status == 201, lent.body);
  REQUIRE(cluster.worker(0).put("/v1/tensors/x", in_region(count)).status == 201);
  REQUIRE(put_on(cluster.worker(1), "cuda:0", "x", Floats(count, 2)).status == 201);
  CHECK(cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}}).at("state") == "succeeded");
  CHECK(client.look() == "all 3");
  CHECK((cluster.worker(1).get_tensor<float>("x") == Floats(count, 3)));
}

// CUDA does not define the result: the worker must not crash, and must report a lost GPU.
TEST_CASE("a client that frees its GPU memory or ends during a collective does not crash the worker") {
  constexpr std::size_t count = 1 << 20;
  for (bool const ends : {false, true}) {
    Cluster cluster(0);
    for (std::string const n : {"0", "1"}) cluster.add_worker("w" + n, "host=h0", {"--allow-client-shm"}, gpu_worker());
    cluster.make_group("g");
    auto client = std::make_optional<LendingClient>(count, 1);
    REQUIRE(cluster.worker(0).put("/v1/shm/cuda/mine", client->request(count * 4)).status == 201);
    REQUIRE(cluster.worker(0).put("/v1/tensors/x", in_region(count)).status == 201);
    REQUIRE(put_on(cluster.worker(1), "cuda:0", "x", Floats(count, 2)).status == 201);
    if (ends)
      client.reset();
    else
      client->free();
    auto const collective = cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}});
    MESSAGE((ends ? "ended: " : "freed: ") << json::serialize(collective.at("state")));
    for (std::size_t w = 0; w < 2; ++w) {
      auto const ready = cluster.worker(w).get("/readyz");
      bool const is_lost = cluster.worker(w).metric(R"(chorus_gpu_lost{device="cuda:0"})") == 1;
      CHECK(ready.status == (is_lost ? 503 : 200));
      if (is_lost) CHECK_MESSAGE(ready.body.find("a GPU is lost: cuda:0") != std::string::npos, ready.body);
      CHECK(put_on(cluster.worker(w), "cpu", "y", {1}).status == 201);
    }
  }
}

TEST_CASE("a handle of too few bytes, of freed memory, or of an ended process is refused with the reason") {
  Fleet fleet(1, {"--allow-client-shm"});
  auto& worker = fleet.cluster.worker(0);
  auto const refused = [&](std::string const& request) {
    auto const answer = worker.put("/v1/shm/cuda/mine", request);
    MESSAGE(answer.body);
    CHECK(answer.status == 422);
    CHECK(worker.get("/v1/shm/cuda").json().at("items").as_array().empty());
  };
  std::string of_the_gone;
  {
    LendingClient client(1 << 20, 1);
    refused(client.request(std::size_t{1} << 40));
    of_the_gone = client.request(4 << 20);
    client.free();
    refused(client.request(4 << 20));
  }
  refused(of_the_gone);
  CHECK(worker.get("/readyz").status == 200);
  CHECK(put_on(worker, "cuda:0", "x", {1, 2}).status == 201);
  CHECK(worker.get_tensor<float>("x") == Floats{1, 2});
}
