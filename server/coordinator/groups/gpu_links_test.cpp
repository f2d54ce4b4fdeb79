// Effects of joined GPUs on ranks, costs and the table.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "collectives/topology/dgx1.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/groups/rank_assignment.hpp"

using namespace chorus;
using namespace chorus::coordinator;

namespace {

auto const constants = model::Constants::defaults();
double const host_gbyte_per_s = 1e-9 / constants.link(Level::host).beta_s_per_byte;

Worker worker(std::string host, std::vector<GpuLocality> gpus) {
  Worker worker;
  worker.locality.host = std::move(host);
  worker.gpus = std::move(gpus);
  return worker;
}

// One worker per GPU of so many p3.16xlarge, in the order of the GPUs, alternating between the hosts.
std::vector<Worker> p3_16xlarge(std::size_t hosts = 1) {
  std::vector<Worker> workers;
  for (auto const& gpu : topology::dgx1_gpus())
    for (std::size_t host = 0; host < hosts; ++host) workers.push_back(worker("h" + std::to_string(host), {gpu}));
  return workers;
}

Standing standing_of(std::vector<Worker> const& workers) {
  Standing standing;
  for (auto const& worker : workers) standing.localities.push_back(worker.locality);
  standing.gpus = ways_of_gpus(workers);
  return standing;
}

double rate(planning::Place const& place, std::uint32_t a, std::uint32_t b) {
  CHECK(place.links->link(a, b) == place.links->link(b, a));
  return place.links->link(a, b).bandwidth_gbyte_per_s;
}

}  // namespace

TEST_CASE("NVLinks are in the matrix, and pairs without them stay at the level of the host") {
  auto const place = place_of(standing_of(p3_16xlarge()), constants);
  auto const nvlinks = topology::dgx1_matrix();
  REQUIRE(place.links.has_value());
  for (std::uint32_t a = 0; a < 8; ++a)
    for (std::uint32_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      auto const nvlink = nvlinks.link(a, b).bandwidth_gbyte_per_s;
      CHECK(rate(place, a, b) == (nvlink < 25 ? doctest::Approx(host_gbyte_per_s) : doctest::Approx(nvlink)));
      CHECK(place.links->link(a, b).latency_s == constants.link(Level::host).alpha_s);
    }
}

TEST_CASE("two workers on one GPU have the rate of its memory") {
  auto const gpus = topology::dgx1_gpus();
  auto const place = place_of(standing_of({worker("h", {gpus[0]}), worker("h", {gpus[0]})}), constants);
  CHECK(rate(place, 0, 1) == gpus[0].memory_gbyte_per_s / 2);
}

// Workers on one GPU take turns, so the rank that reduces should do all the work.
TEST_CASE("on one GPU, one rank does everything, whatever the size") {
  auto gpu = topology::dgx1_gpus()[0];
  gpu.memory_gbyte_per_s = 4800;
  for (std::size_t const members : {2, 4, 8}) {
    auto const rank_assignment =
        arrange(standing_of(std::vector<Worker>(members, worker("h", {gpu}))), {}, constants).value();
    std::size_t rows = 0;
    for (auto const& selection : rank_assignment.selection) {
      if (selection.op != "all_reduce") continue;
      CHECK(selection.algorithm == "centralized");
      ++rows;
    }
    CHECK(rows > 0);
  }
}

TEST_CASE("a GPU of one's own beside the common one, or another GPU, takes no turns") {
  auto const gpus = topology::dgx1_gpus();
  auto const host_cores = [](std::vector<Worker> const& workers) {
    return place_of(standing_of(workers), constants).constants.host_cores;
  };
  CHECK(host_cores({worker("h", {gpus[0]}), worker("h", {gpus[0]})}) == 1);
  CHECK(host_cores({worker("h", {gpus[0]}), worker("h", {gpus[3]})}) == constants.host_cores);
  CHECK(host_cores({worker("h", {gpus[0]}), worker("h", {gpus[0], gpus[3]})}) == constants.host_cores);
}

TEST_CASE("the ring over the workers of a p3.16xlarge uses the double NVLinks, and stays if they are listed so") {
  auto const rank_assignment = arrange(standing_of(p3_16xlarge()), {}, constants).value();
  auto const ring = rank_assignment.order;
  CHECK(ring.front() == 0);
  for (std::size_t rank = 0; rank < 8; ++rank)
    CHECK(topology::dgx1_matrix().link(ring[rank], ring[(rank + 1) % 8]).bandwidth_gbyte_per_s == 50);
  CHECK(rank_assignment.stretch.assigned == doctest::Approx(1));
  CHECK(rank_assignment.stretch.arrival_order > rank_assignment.stretch.assigned);
}

TEST_CASE("rings over several such hosts enter each host once, and use double NVLinks within") {
  for (std::size_t const hosts : {2, 4, 8}) {
    auto const workers = p3_16xlarge(hosts);
    auto const ring = arrange(standing_of(workers), {}, constants).value().order;
    auto const place = place_of(standing_of(workers), constants);
    std::size_t crossings = 0, slower = 0;
    for (std::size_t rank = 0; rank < ring.size(); ++rank) {
      auto const a = ring[rank], b = ring[(rank + 1) % ring.size()];
      if (workers[a].locality != workers[b].locality)
        ++crossings;
      else if (rate(place, a, b) < 50)
        ++slower;
    }
    CHECK(crossings == hosts);
    CHECK(slower == 0);
  }
}

TEST_CASE("workers without GPUs, with GPUs on other hosts, or with unconnected GPUs keep the usual order") {
  auto gpus = topology::dgx1_gpus();
  CHECK(ways_of_gpus({worker("a", {}), worker("a", {})}) == nullptr);
  CHECK(ways_of_gpus({worker("a", {gpus[0]}), worker("b", {gpus[3]}), worker("a", {})}) == nullptr);
  CHECK(ways_of_gpus({worker("a", {gpus[0]}), worker("a", {gpus[5]})}) == nullptr);
  CHECK_FALSE(place_of(standing_of({worker("a", {}), worker("a", {})}), constants).links.has_value());
}

TEST_CASE(
    "of more members than a matrix of links may have, GPUs are not joined, and the links are those of the levels") {
  std::size_t const most_hosts = topology::max_matrix_workers / 8;
  CHECK(ways_of_gpus(p3_16xlarge(most_hosts)) != nullptr);
  auto const standing = standing_of(p3_16xlarge(most_hosts + 1));
  CHECK(standing.gpus == nullptr);
  CHECK_FALSE(place_of(standing, constants).links.has_value());
}

TEST_CASE("joined GPUs are faster than the HTTP measurement between their workers") {
  auto const gpus = topology::dgx1_gpus();
  auto standing = standing_of({worker("h", {gpus[0]}), worker("h", {gpus[3]}), worker("h", {})});
  standing.pairs =
      std::make_shared<PairLinks const>(PairLinks{{0, 1, 5e-6, 1e9}, {0, 2, 5e-6, 1e9}, {1, 2, 5e-6, 1e9}});
  auto const place = place_of(standing, constants);
  CHECK(rate(place, 0, 1) == 50);
  CHECK(rate(place, 0, 2) == doctest::Approx(host_gbyte_per_s));
  CHECK(place.links->link(0, 1).latency_s == place.links->link(0, 2).latency_s);
}

TEST_CASE("the network cards of hosts keep their values without GPUs") {
  auto const joined = place_of(standing_of(p3_16xlarge(2)), constants);
  CHECK(joined.constants.uplink_s_per_byte == constants.uplink_s_per_byte);
}

TEST_CASE("if all workers of one host have GPUs, cores carry nothing and sums take a GPU's time") {
  auto const gpus = place_of(standing_of(p3_16xlarge()), constants).constants;
  CHECK(gpus.byte_cpu_s == 0);
  CHECK(gpus.gamma_s_per_byte == doctest::Approx(3e-9 / topology::dgx1_gpus()[0].memory_gbyte_per_s));
  CHECK(gpus.cache_bytes == 0);
  for (auto const& mixed : {p3_16xlarge(2), std::vector<Worker>{worker("h", {}), p3_16xlarge()[0], p3_16xlarge()[3]}}) {
    auto const cores = place_of(standing_of(mixed), constants).constants;
    CHECK(cores.byte_cpu_s == constants.byte_cpu_s);
    CHECK(cores.gamma_s_per_byte == constants.gamma_s_per_byte);
  }
}

TEST_CASE("links of GPUs follow members that change places") {
  auto const gpus = topology::dgx1_gpus();
  auto const standing = standing_of({worker("h", {gpus[0]}), worker("h", {gpus[3]}), worker("h", {gpus[1]})});
  std::vector<std::uint32_t> const order{2, 0, 1};
  auto const place = place_of(in_order(standing, order), constants);
  CHECK(rate(place, 1, 2) == 50);
  CHECK(rate(place, 0, 1) == 25);
  CHECK(rate(place, 0, 2) == 25);
}
