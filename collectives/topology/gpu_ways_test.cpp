#include "collectives/topology/gpu_ways.hpp"

#include <doctest/doctest.h>

#include "collectives/topology/dgx1.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

using Gpus = std::vector<GpuLocality>;

GpuLocality gpu(char last, std::vector<Nvlinks> nvlinks = {}) {
  GpuLocality gpu{std::string("GPU-00000000-0000-0000-0000-00000000000") + last, std::string("0000:0") + last + ":00.0",
                  "a GPU"};
  gpu.memory_gbyte_per_s = 900;
  gpu.nvlinks = std::move(nvlinks);
  return gpu;
}

Nvlinks to(char last, double gbyte_per_s) { return {std::string("0000:0") + last + ":00.0", false, 1, gbyte_per_s}; }
Nvlinks to_switch(char last, double gbyte_per_s) {
  return {std::string("0000:1") + last + ":00.0", true, 1, gbyte_per_s};
}

std::vector<GpuWay> ways_on_one_host(std::vector<Gpus> const& gpus) {
  return gpu_ways(std::vector<Locality>(gpus.size(), Locality{.host = "h"}), gpus);
}

}  // namespace

TEST_CASE("workers with one GPU each of a p3.16xlarge have the ways of its matrix, and no others") {
  std::vector<Gpus> workers;
  for (auto const& gpu : dgx1_gpus()) workers.push_back({gpu});
  auto const matrix = dgx1_matrix();
  auto const ways = ways_on_one_host(workers);
  CHECK(ways.size() == 16);
  for (auto const& way : ways) CHECK(way.gbyte_per_s == matrix.link(way.a, way.b).bandwidth_gbyte_per_s);
}

TEST_CASE("two workers on one GPU copy within its memory, which reads and writes") {
  CHECK(gbyte_per_s_between(gpu('1'), gpu('1')) == 450);
  auto unknown = gpu('1');
  unknown.memory_gbyte_per_s = 0;
  CHECK(gbyte_per_s_between(unknown, gpu('1')) == std::nullopt);
}

TEST_CASE("GPUs on NVSwitches reach each other as fast as the one with fewer links") {
  auto const a = gpu('1', {to_switch('0', 125), to_switch('1', 100)}), b = gpu('2', {to_switch('1', 200)});
  CHECK(gbyte_per_s_between(a, b) == 200);
  CHECK(gbyte_per_s_between(b, a) == 200);
  CHECK(gbyte_per_s_between(a, gpu('3')) == std::nullopt);
}

TEST_CASE("a link that the other end does not report is ignored") {
  CHECK(gbyte_per_s_between(gpu('1', {to('2', 50)}), gpu('2', {to('1', 25)})) == 25);
  CHECK(gbyte_per_s_between(gpu('1', {to('2', 50)}), gpu('2')) == std::nullopt);
  CHECK(gbyte_per_s_between(gpu('1', {to('3', 50)}), gpu('2', {to('3', 50)})) == std::nullopt);
}

TEST_CASE("workers of several GPUs have the slowest of their ways, and none if one is missing") {
  auto const all = dgx1_gpus();
  // 0-2 and 1-3 by one link, 0-3 and 1-2 by two
  CHECK(ways_on_one_host({{all[0], all[1]}, {all[2], all[3]}}) == std::vector<GpuWay>{{0, 1, 25}});
  CHECK(ways_on_one_host({{all[0], all[3]}, {all[4], all[7]}}).empty());  // 0 and 7 have no link
}

TEST_CASE("NVLinks end at the host, and workers without GPUs have no ways") {
  auto const all = dgx1_gpus();
  std::vector<Gpus> const gpus{{all[0]}, {all[3]}, {}, {all[3]}};
  std::vector<Locality> const places{{.host = "a"}, {.host = "a"}, {.host = "a"}, {.host = "b"}};
  CHECK(gpu_ways(places, gpus) == std::vector<GpuWay>{{0, 1, 50}});
  CHECK(gpu_ways({}, {}).empty());
}
