// A worker process that loses its GPU, a double or a real one: its reports, the rest of the service, and takeover.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/fleets/gpu_programs.hpp"
#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 10'000;

// The index of the worker that owns the only shard.
std::size_t owner(Cluster& cluster) {
  auto const parameter = cluster.coordinator.get("/v1/parameters/w").json();
  for (auto const& endpoint : parameter.at("endpoints").as_array())
    if (endpoint.at("role").as_string() == "owner") return endpoint.at("worker").as_string() == "w0" ? 0 : 1;
  return cluster.size();
}

void check_it_says_so(Service& worker) {
  auto const unready = worker.get("/readyz");
  CHECK(unready.status == 503);
  CHECK_MESSAGE(unready.body.find("a GPU is lost: cuda:0") != std::string::npos, unready.body);
  CHECK_MESSAGE(unready.body.find(lost_gpu_reason()) != std::string::npos, unready.body);
  CHECK(worker.metric(R"(chorus_gpu_lost{device="cuda:0"})") == 1);
}

}  // namespace

TEST_CASE("when an owner loses its GPU, the backup goes on with every acknowledged push on its own GPU") {
  Cluster cluster(0);
  for (std::string const n : {"0", "1"}) cluster.add_worker("w" + n, "host=h" + n, {}, gpu_worker());
  cluster.make_group("g");
  auto const made = cluster.coordinator.put("/v1/parameters/w",
                                            R"({"group":"g","shape":[10000],"shards":1,"replicas":2,"device":"cuda"})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  auto const first = owner(cluster);
  REQUIRE(first < 2);
  auto& loses = cluster.worker(first);
  auto& goes_on = cluster.worker(1 - first);
  ParameterClient client(goes_on.url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  for (int push = 0; push < 3; ++push) REQUIRE(client.push("w", ones).status == 200);

  lose_gpu(loses);
  REQUIRE(eventually([&] { return client.push("w", ones).status == 200; }, std::chrono::seconds(30)));
  REQUIRE(eventually([&] { return owner(cluster) == 1 - first; }, std::chrono::seconds(30)));
  REQUIRE(client.push("w", ones).status == 200);
  auto const pulled = client.pull("w");
  REQUIRE_MESSAGE(pulled.status == 200, pulled.body);
  CHECK((ParameterClient::values<float>(pulled.body) == Floats(elements, 5)));

  check_it_says_so(loses);
  CHECK(goes_on.get("/readyz").status == 200);
  CHECK(goes_on.metric(R"(chorus_gpu_kernels_total{device="cuda:0"})") > 0);
}

TEST_CASE("a GPU lost in a group gives one error on every rank, which names the rank, and other tensors stay usable") {
  Cluster cluster(0);
  for (std::string const n : {"0", "1", "2"}) cluster.add_worker("w" + n, "host=h0", {}, gpu_worker());
  cluster.make_group("g");
  auto const sum = [&](std::string const& tensor) {
    return cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", tensor}}).as_object();
  };
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(put_on(cluster.worker(i), "cuda:0", "on_gpu", Floats(elements, 1)).status == 201);
    REQUIRE(put_on(cluster.worker(i), "cpu", "on_host", Floats(elements, 1)).status == 201);
  }
  REQUIRE(sum("on_gpu").at("state") == "succeeded");

  auto& loses = cluster.worker(1);
  lose_gpu(loses);
  auto const failed = sum("on_gpu");
  auto const told = boost::json::serialize(failed);
  CHECK_MESSAGE(failed.at("state") == "failed", told);
  CHECK_MESSAGE(told.find("device_failed") != std::string::npos, told);
  std::string const why(failed.at("error").at("detail").as_string());
  CHECK(failed.at("error").at("ranks") == boost::json::array{1});
  CHECK_MESSAGE(why.find("rank 1 (") != std::string::npos, why);
  CHECK_MESSAGE(why.find("cuda:0: ") != std::string::npos, why);
  CHECK_MESSAGE(why.find(lost_gpu_reason()) != std::string::npos, why);
  for (std::size_t const i : {0, 2}) {
    CHECK(cluster.worker(i).get_tensor<float>("on_gpu") == Floats(elements, 3));
    CHECK(cluster.worker(i).get("/readyz").status == 200);
  }
  check_it_says_so(loses);
  CHECK(loses.get("/v1/tensors/on_gpu").code() == "device_failed");

  REQUIRE(sum("on_host").at("state") == "succeeded");
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.worker(i).get_tensor<float>("on_host") == Floats(elements, 3));
}
