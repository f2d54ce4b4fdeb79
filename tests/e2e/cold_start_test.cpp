// A coordinator and four workers that are started at the same instant, in either order: within two seconds a group
// exists and has a right result.
//
//   CHORUS_COLD_STARTS=200 build/release/tests/test_e2e_cold_start    docs/explanation/testing.md
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/held_port.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t workers_count = 4;

int rounds() {
  return static_cast<int>(std::clamp<std::uint64_t>(number_from_environment("CHORUS_COLD_STARTS", 40), 2, 10000));
}

// Returns the seconds from the first process until the group exists, and until it has summed.
std::pair<double, double> cold_start(bool workers_first) {
  HeldPort const port;  // the workers need the port before the coordinator listens
  auto const begun = Clock::now();
  auto const since = [begun] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
  std::optional<Process> coordinator_process;
  auto const start_coordinator = [&] {
    coordinator_process.emplace(
        std::vector<std::string>{binary("chorus-coordinator"), "--port", port.text(), "--log-level", "error"});
  };
  if (!workers_first) start_coordinator();
  std::vector<Process> worker_processes;
  for (std::size_t i = 0; i < workers_count; ++i)
    worker_processes.emplace_back(std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator",
                                                           "http://127.0.0.1:" + port.text(), "--id",
                                                           "w" + std::to_string(i), "--log-level", "error"});
  if (workers_first) start_coordinator();
  Service const coordinator("coordinator", std::move(*coordinator_process));
  std::vector<std::unique_ptr<Service>> workers;
  for (auto& process : worker_processes)
    workers.push_back(std::make_unique<Service>("w" + std::to_string(workers.size()), std::move(process)));
  CHECK(eventually([&] { return coordinator.put("/v1/groups/g", R"({"size":4})").status / 100 == 2; }));
  auto const stood = since();
  for (std::size_t i = 0; i < workers_count; ++i)
    CHECK(workers[i]->put_tensor("x", "u64", std::vector<std::uint64_t>(100, 1u << i)).status / 100 == 2);
  auto const record = coordinator.post("/v1/collectives?wait=10s", R"({"group":"g","tensor":"x"})");
  auto const summed = since();
  CHECK_MESSAGE(record.json().at("state") == "succeeded", record.body);
  for (auto const& worker : workers)
    CHECK(worker->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(100, 15));
  return {stood, summed};
}

void print(char const* what, std::vector<double> seconds) {
  std::ranges::sort(seconds);
  std::cout << seconds.size() << " cold starts, ms until " << what << " (min, median, max): ";
  for (auto const value : {seconds.front(), seconds[seconds.size() / 2], seconds.back()})
    std::cout << static_cast<int>(value * 1000 + 0.5) << ' ';
  std::cout << std::endl;
}

}  // namespace

TEST_CASE("coordinator and workers that start at the same instant, in either order, form a group within two seconds") {
  std::vector<double> stood, summed;
  for (int round = 0; round < rounds(); ++round) {
    INFO("round " << round << ", the workers first in every other one");
    auto const [group, result] = cold_start(round % 2 == 1);
    stood.push_back(group);
    summed.push_back(result);
    CHECK(result < 2.0);
  }
  print("a group of four stands", stood);
  print("its first result", summed);
}
