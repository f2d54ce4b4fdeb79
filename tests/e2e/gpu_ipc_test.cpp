// Worker processes that share one GPU, or a double of one: each reads the other's tensor in place.
#include <doctest/doctest.h>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/gpu_programs.hpp"

using namespace chorus::testing;

namespace {

constexpr std::size_t elements = 1'000'000;
char const* const peer_bytes = R"(chorus_gpu_copied_bytes_total{device="cuda:0",direction="peer"})";

// Two workers with tensors "grad" on the GPU, all 1 and all 2.
struct Host {
  explicit Host(std::vector<std::string> const& flags_of_second = {}) : cluster(0) {
    cluster.add_worker("w0", "host=h0", {}, gpu_worker());
    cluster.add_worker("w1", "host=h0", flags_of_second, gpu_worker());
    cluster.make_group("g");
    put(0, 1);
    put(1, 2);
  }

  void put(std::size_t worker, float value) {
    REQUIRE(put_on(cluster.worker(worker), "cuda:0", "grad", std::vector<float>(elements, value)).status == 201);
  }

  void check_sum(float sum) {
    auto const collective = cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "grad"}});
    CHECK_MESSAGE(collective.at("state") == "succeeded", boost::json::serialize(collective));
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(cluster.worker(i).get_tensor<float>("grad") == std::vector<float>(elements, sum));
  }
  boost::json::object link_of(std::size_t worker) {
    return cluster.worker(worker).get("/v1/links").json().at("items").at(0).as_object();
  }

  Cluster cluster;
};

}  // namespace

TEST_CASE("two workers on one GPU sum their tensors without copies through host memory") {
  Host host;
  host.check_sum(3);
  host.check_sum(6);
  // A worker reads the elements that it reduces. It may also write results that the other worker only receives.
  double moved = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    moved += host.cluster.worker(i).metric(peer_bytes);
    auto const link = host.link_of(i);
    CHECK(link.at("sent_bytes") == 0);
    CHECK(!link.contains("why_not_ipc"));
  }
  CHECK(moved >= 4.0 * elements * sizeof(float));
}

TEST_CASE("a worker without GPU IPC is reached through host memory") {
  Host host({"--gpu-ipc", "off"});
  host.check_sum(3);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(host.cluster.worker(i).metric(peer_bytes) == 0);
    CHECK(host.link_of(i).at("sent_bytes").to_number<std::size_t>() >= elements * sizeof(float));
  }
}

TEST_CASE("the successor of a worker that died is read in place again") {
  Host host;
  host.check_sum(3);
  auto const before = host.cluster.worker(0).metric(peer_bytes);
  host.cluster.kill_worker(1);
  host.cluster.add_worker("w2", "host=h0", {}, gpu_worker());
  host.put(2, 4);
  host.cluster.make_group("g2", {"w0", "w2"});
  auto const collective = host.cluster.run({{"group", "g2"}, {"op", "all_reduce"}, {"tensor", "grad"}});
  CHECK_MESSAGE(collective.at("state") == "succeeded", boost::json::serialize(collective));
  for (std::size_t const i : {0, 2})
    CHECK(host.cluster.worker(i).get_tensor<float>("grad") == std::vector<float>(elements, 7));
  auto const moved = host.cluster.worker(0).metric(peer_bytes) - before + host.cluster.worker(2).metric(peer_bytes);
  CHECK(moved >= 2.0 * elements * sizeof(float));
}
