// Messages to and fro between two programs on the public C++ API: whole workers, each in a process of its own, that
// make a group at a coordinator. Half a round trip counts, as in tests/bench/peers/mpi_ping_pong.c.
//
//   api_ping_pong --coordinator URL --link shm|tcp --bytes 4,1024 --seconds 0.3
//
// Prints a JSON line for each size.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/api/must.hpp"
#include "worker/api/worker.hpp"
#include "worker/bench/timing/bound_thread.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t trips_max = 10000, trips_min = 3, warmup = 5;

struct Options {
  std::string coordinator, link = "shm";
  std::vector<std::uint64_t> bytes{4};
  double seconds = 0.3;
};

class End {
 public:
  End(Options const& options, std::uint32_t rank)
      : options_(options), rank_(rank), worker_(start(options, rank)), group_(make_group()) {
    must(group_.barrier());
    if (group_.path() != (options.link == "shm" ? "shm" : "links"))
      throw std::runtime_error("messages go over " + group_.path() + ": " + group_.why_not_shared());
  }

  void measure(std::uint64_t bytes) {
    auto const elements = bytes / sizeof(std::uint32_t);
    auto sent = must(worker_.allocate<std::uint32_t>(elements));
    auto received = must(worker_.allocate<std::uint32_t>(elements));
    run(sent, received, warmup);
    if (rank_ == 0) {
      auto const least = std::max(*std::ranges::min_element(seconds_), 1e-9);
      trips_[0] = std::clamp(static_cast<std::uint64_t>(options_.seconds / least / 2), trips_min, trips_max);
      must(group_.send(trips_, 1));
    } else {
      must(group_.recv(trips_, 0));
    }
    run(sent, received, trips_[0]);
    if (rank_ == 0) print(bytes);
  }

  void leave() { must(group_.barrier()); }

 private:
  using Numbers = chorus::Tensor<std::uint32_t>;

  static chorus::Worker start(Options const& options, std::uint32_t rank) {
    chorus::WorkerOptions of_worker;
    of_worker.coordinator = options.coordinator;
    of_worker.id = "ping-pong-" + std::to_string(rank);
    of_worker.shares_memory = options.link == "shm";
    return must(chorus::Worker::start(of_worker));
  }

  chorus::JoinedGroup make_group() {
    chorus::GroupOptions members;
    members.workers = {"ping-pong-0", "ping-pong-1"};
    return must(worker_.create_group("ping-pong", members, Clock::now() + std::chrono::seconds(30)));
  }

  // Seconds of half a trip into seconds_.
  void run(Numbers& sent, Numbers& received, std::uint64_t trips) {
    seconds_.clear();
    for (std::uint64_t trip = 0; trip < trips; ++trip) {
      ++turns_;
      if (rank_ == 0) sent[0] = sent[sent.size() - 1] = turns_;
      auto const begin = Clock::now();
      if (rank_ == 0) must(group_.send(sent, 1));
      must(group_.recv(received, 1 - rank_));
      if (rank_ == 1) must(group_.send(received, 0));
      auto const end = Clock::now();
      is_wrong_ |= received[0] != turns_ || received[received.size() - 1] != turns_;
      seconds_.push_back(std::chrono::duration<double>(end - begin).count() / 2);
    }
  }

  void print(std::uint64_t bytes) {
    std::ranges::sort(seconds_);
    std::printf(
        "{\"op\":\"ping_pong\",\"link\":\"%s\",\"bytes\":%llu,\"iterations\":%zu,\"p50_us\":%.3f,\"correct\":%s}\n",
        options_.link.c_str(), static_cast<unsigned long long>(bytes), seconds_.size(),
        seconds_[seconds_.size() / 2] * 1e6, is_wrong_ ? "false" : "true");
    std::fflush(stdout);
  }

  Options const& options_;
  std::uint32_t const rank_;
  chorus::Worker worker_;
  chorus::JoinedGroup group_;
  std::vector<std::uint64_t> trips_{0};  // the number of trips that rank 0 tells
  std::vector<double> seconds_;
  std::uint32_t turns_ = 0;
  bool is_wrong_ = false;
};

int run_end(Options const& options, std::uint32_t rank) try {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  chorus::bench::stay_on_core(rank);
  End one(options, rank);
  for (auto const bytes : options.bytes) one.measure(bytes);
  one.leave();
  return 0;
} catch (std::exception const& why) {
  std::fprintf(stderr, "rank %u: %s\n", rank, why.what());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("messages to and fro through the public C++ API");
  app.add_option("--coordinator", options.coordinator)->required();
  app.add_option("--link", options.link)->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--bytes", options.bytes)->delimiter(',');
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  auto const other = fork();
  if (other < 0) return 1;
  if (other == 0) return run_end(options, 1);
  auto const own = run_end(options, 0);
  if (own != 0) kill(other, SIGKILL);
  int status = 0;
  waitpid(other, &status, 0);
  return own != 0 || status != 0 ? 1 : 0;
}
