// A worker process that loses its GPU, a double, and with it a shard of a parameter.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "tests/support/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 10'000;

// The place of the worker that owns the only shard.
std::size_t owner(Cluster& cluster) {
  auto const parameter = cluster.coordinator.get("/v1/parameters/w").json();
  for (auto const& endpoint : parameter.at("endpoints").as_array())
    if (endpoint.at("role").as_string() == "owner") return endpoint.at("worker").as_string() == "w0" ? 0 : 1;
  return cluster.size();
}

}  // namespace

TEST_CASE("the GPU of an owner is lost: its backup goes on with every push that was acknowledged, on its own GPU") {
  Cluster cluster(0);
  for (std::string const n : {"0", "1"}) cluster.add_worker("w" + n, "host=h" + n, {}, "worker_on_double");
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

  loses.process.signal(SIGUSR2);
  REQUIRE(eventually([&] { return client.push("w", ones).status == 200; }, std::chrono::seconds(30)));
  REQUIRE(eventually([&] { return owner(cluster) == 1 - first; }, std::chrono::seconds(30)));
  REQUIRE(client.push("w", ones).status == 200);
  auto const pulled = client.pull("w");
  REQUIRE_MESSAGE(pulled.status == 200, pulled.body);
  CHECK((ParameterClient::values<float>(pulled.body) == Floats(elements, 5)));

  auto const unready = loses.get("/readyz");
  CHECK(unready.status == 503);
  CHECK(unready.body.find("a GPU is lost: cuda:0") != std::string::npos);
  CHECK(loses.metric(R"(chorus_gpu_lost{device="cuda:0"})") == 1);
  CHECK(goes_on.get("/readyz").status == 200);
  CHECK(goes_on.metric(R"(chorus_gpu_kernels_total{device="cuda:0"})") > 0);
}
