// How long programs on the public C++ API wait for a group that they make of themselves, and for its deletion: whole
// workers in this process, each called from a thread of its own. The time of the slowest member counts.
//
//   api_groups --coordinator URL --ranks 8 --groups 200
//
// Prints a JSON line for each of create_group, subgroup and delete_group, and one for the first barrier of a group.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/api/must.hpp"
#include "worker/api/worker.hpp"

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point soon() { return Clock::now() + std::chrono::seconds(30); }

class Fleet {
 public:
  Fleet(std::string const& coordinator, std::uint32_t ranks)
      : ranks_(ranks), line_(static_cast<std::ptrdiff_t>(ranks)) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      chorus::WorkerOptions options;
      options.coordinator = coordinator;
      options.id = "groups-" + std::to_string(rank);
      options_.workers.push_back(options.id);
      workers_.push_back(must(chorus::Worker::start(options)));
    }
  }

  void measure(std::uint32_t groups) {
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([this, rank, groups] { run(rank, groups); });
  }

  void print() const {
    for (auto const& [what, times] : seconds_) {
      auto sorted = times;
      std::ranges::sort(sorted);
      auto const percentile = [&](std::size_t of_100) { return sorted[(sorted.size() * of_100 + 99) / 100 - 1] * 1e3; };
      std::printf("{\"call\":\"%s\",\"ranks\":%u,\"groups\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n", what.c_str(),
                  ranks_, sorted.size(), percentile(50), percentile(99));
    }
  }

 private:
  // All begin together.
  template <class Call>
  auto timed(std::uint32_t i, std::string const& what, Call const& call) {
    line_.arrive_and_wait();
    auto const begin = Clock::now();
    auto value = call();
    auto const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::lock_guard const lock(mutex_);
    auto& times = seconds_[what];
    times.resize(std::max<std::size_t>(times.size(), i + 1), 0);
    times[i] = std::max(times[i], seconds);
    return value;
  }

  void run(std::uint32_t rank, std::uint32_t groups) {
    auto& worker = workers_[rank];
    auto const all = must(worker.create_group("groups", options_, soon()));
    std::vector<std::uint32_t> everybody(ranks_);
    for (std::uint32_t r = 0; r < ranks_; ++r) everybody[r] = ranks_ - 1 - r;
    for (std::uint32_t i = 0; i < groups; ++i) {
      auto const name = "made-" + std::to_string(i);
      auto made = timed(i, "create_group", [&] { return must(worker.create_group(name, options_, soon())); });
      timed(i, "first barrier", [&] { return must(made.barrier()), 0; });
      auto half = timed(i, "subgroup", [&] { return must(all.subgroup(everybody, soon())); });
      timed(i, "delete_group", [&] {
        if (rank == 0) must(worker.delete_group(name, soon()));
        return 0;
      });
      if (rank == 0) must(worker.delete_group(half.name(), soon()));
    }
    line_.arrive_and_wait();
  }

  std::uint32_t const ranks_;
  std::barrier<> line_;
  chorus::GroupOptions options_;
  std::vector<chorus::Worker> workers_;
  std::mutex mutex_;
  std::map<std::string, std::vector<double>> seconds_;
};

}  // namespace

int main(int argc, char** argv) try {
  std::string coordinator;
  std::uint32_t ranks = 8, groups = 200;
  CLI::App app("Times of groups that programs make of themselves");
  app.add_option("--coordinator", coordinator, "URL")->required();
  app.add_option("--ranks", ranks, "members of each group")->check(CLI::Range(1, 256));
  app.add_option("--groups", groups, "groups made and deleted")->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);
  Fleet fleet(coordinator, ranks);
  fleet.measure(groups);
  fleet.print();
  return 0;
} catch (std::exception const& why) {
  std::fprintf(stderr, "api_groups: %s\n", why.what());
  return 1;
}
