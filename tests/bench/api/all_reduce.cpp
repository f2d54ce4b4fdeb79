// How long a program on the public C++ API waits for an all_reduce of f32 sums: whole workers, each in a process of its
// own, that join a group at a coordinator. What chorus-bench does with the engine alone is done here in the same way:
// the same line to begin at, the slowest rank's time counts, and two inputs in turn, whose sums differ everywhere.
//
//   api_all_reduce --coordinator URL --ranks 2 --link shm|tcp --bytes 4,1024 --seconds 0.3
//
// The workers are api-0, api-1, ...; whoever started the program makes the group "api" of them. A JSON line per size.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/api/must.hpp"
#include "worker/api/worker.hpp"
#include "worker/bench/ranks/start_line.hpp"
#include "worker/bench/timing/bound_thread.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t iterations_max = 10000, iterations_min = 3, warmup = 5;

struct Options {
  std::string coordinator, link = "shm", algorithm = "auto";
  std::uint32_t ranks = 2;
  std::vector<std::uint64_t> bytes{4};
  double seconds = 0.3;
};

// What the ranks' processes tell each other between the calls.
struct alignas(64) Board {
  std::atomic<std::size_t> iterations{0};
  std::atomic<bool> is_wrong{false};

  // Behind it: of each iteration of this rank.
  [[nodiscard]] double* seconds_of(std::uint32_t rank) {
    return reinterpret_cast<double*>(this + 1) + rank * iterations_max;
  }
};

Board& make_board(std::uint32_t ranks) {
  auto const bytes = sizeof(Board) + ranks * iterations_max * sizeof(double);
  auto* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return *new (memory) Board;
}

// 0 or 1, one more in odd turns.
float element_of(std::uint32_t rank, std::size_t i, std::size_t turn) {
  return static_cast<float>(((i * 2654435761U + rank * 40503U) >> 7 & 1) + turn % 2);
}

class Rank {
 public:
  Rank(Options const& options, std::uint32_t rank, Board& board, chorus::bench::StartLine& line)
      : options_(options),
        rank_(rank),
        board_(board),
        line_(line),
        worker_(start()),
        group_(worker_.join("api", Clock::now() + std::chrono::seconds(30)).value()) {
    call_.algorithm = options.algorithm;
    must(group_.barrier());
    if (group_.path() != (options.link == "shm" ? "shm" : "links"))
      throw std::runtime_error("calls go over " + group_.path() + ": " + group_.why_not_shared());
  }

  void measure(std::uint64_t bytes) {
    prepare(bytes / sizeof(float));
    run(warmup);
    line_.wait();
    if (rank_ == 0) {
      auto const least = std::max(slowest(warmup).front(), 1e-9);
      auto const wanted = static_cast<std::size_t>(options_.seconds / least);
      board_.iterations = std::clamp(wanted, iterations_min, iterations_max);
    }
    line_.wait();
    auto const iterations = board_.iterations.load();
    run(iterations);
    line_.wait();
    if (rank_ == 0) print(bytes, slowest(iterations));
    line_.wait();  // what was measured is written over by the next size
  }

  // So that nobody is told that a member was lost.
  void leave() { must(group_.barrier()); }

 private:
  chorus::Worker start() {
    chorus::WorkerOptions options;
    options.coordinator = options_.coordinator;
    options.id = "api-" + std::to_string(rank_);
    options.shares_memory = options_.link == "shm";
    return chorus::Worker::start(options).value();
  }

  void prepare(std::size_t elements) {
    output_.emplace(worker_.allocate<float>(elements).value());
    inputs_.clear();
    for (std::size_t turn = 0; turn < 2; ++turn) {
      inputs_.push_back(worker_.allocate<float>(elements).value());
      expected_[turn].assign(elements, 0);
      for (std::size_t i = 0; i < elements; ++i) {
        inputs_[turn][i] = element_of(rank_, i, turn);
        for (std::uint32_t r = 0; r < options_.ranks; ++r) expected_[turn][i] += element_of(r, i, turn);
      }
    }
  }

  void run(std::size_t iterations) {
    auto* const seconds = board_.seconds_of(rank_);
    for (std::size_t i = 0; i < iterations; ++i) {
      auto const turn = turns_++ % 2;
      line_.wait();
      auto const begin = Clock::now();
      auto const status = group_.all_reduce(inputs_[turn], *output_, call_);
      auto const end = Clock::now();
      must(status);
      seconds[i] = std::chrono::duration<double>(end - begin).count();
      line_.wait();  // as tests/bench/peers/harness.h does, and for the same reason
      if (std::memcmp(output_->data(), expected_[turn].data(), expected_[turn].size() * sizeof(float)) != 0)
        board_.is_wrong = true;
    }
  }

  // Of each iteration, sorted.
  [[nodiscard]] std::vector<double> slowest(std::size_t iterations) const {
    std::vector<double> found(iterations, 0);
    for (std::uint32_t r = 0; r < options_.ranks; ++r)
      for (std::size_t i = 0; i < iterations; ++i) found[i] = std::max(found[i], board_.seconds_of(r)[i]);
    std::ranges::sort(found);
    return found;
  }

  void print(std::uint64_t bytes, std::vector<double> const& seconds) const {
    auto const percentile = [&](std::size_t of_100) {
      return seconds[(seconds.size() * of_100 + 99) / 100 - 1] * 1e6;  // nearest rank
    };
    std::printf(
        "{\"op\":\"all_reduce\",\"link\":\"%s\",\"ranks\":%u,\"bytes\":%llu,\"dtype\":\"f32\",\"iterations\":%zu,"
        "\"p50_us\":%.3f,\"p99_us\":%.3f,\"correct\":%s}\n",
        options_.link.c_str(), options_.ranks, static_cast<unsigned long long>(bytes), seconds.size(), percentile(50),
        percentile(99), board_.is_wrong ? "false" : "true");
    std::fflush(stdout);
  }

  Options const& options_;
  std::uint32_t const rank_;
  Board& board_;
  chorus::bench::StartLine& line_;
  chorus::Worker worker_;
  chorus::JoinedGroup group_;
  chorus::CollectiveOptions call_;
  std::vector<chorus::Tensor<float>> inputs_;
  std::optional<chorus::Tensor<float>> output_;
  std::vector<float> expected_[2];
  std::size_t turns_ = 0;
};

int run_rank(Options const& options, std::uint32_t rank, Board& board, chorus::bench::StartLine& line) try {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // As chorus-bench: with a core for each over shared memory, where the kernel at times keeps two ranks on one.
  auto const cores = std::thread::hardware_concurrency();
  if (options.ranks > cores || (options.ranks == cores && options.link == "shm")) chorus::bench::stay_on_core(rank);
  Rank one(options, rank, board, line);
  for (auto const bytes : options.bytes) one.measure(bytes);
  one.leave();
  return 0;
} catch (std::exception const& why) {
  std::fprintf(stderr, "rank %u: %s\n", rank, why.what());
  return 1;
}

// Whoever waits at the line for a rank that has failed would wait for ever.
int wait_for(std::vector<pid_t> const& ranks) {
  bool failed = false;
  for (std::size_t i = 0; i < ranks.size() && !failed; ++i) {
    int status = 0;
    failed = wait(&status) < 0 || status != 0;
  }
  if (failed)
    for (auto const rank : ranks) kill(rank, SIGKILL);
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("an all_reduce through the public C++ API");
  app.add_option("--coordinator", options.coordinator)->required();
  app.add_option("--link", options.link)->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--algorithm", options.algorithm);
  app.add_option("--ranks", options.ranks)->check(CLI::Range(1, 256));
  app.add_option("--bytes", options.bytes)->delimiter(',');
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  auto line = chorus::bench::StartLine::make(options.ranks).value();
  auto& board = make_board(options.ranks);
  std::vector<pid_t> ranks;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    auto const child = fork();
    if (child == 0) return run_rank(options, rank, board, line);
    if (child < 0) std::perror("fork");
    if (child < 0) break;
    ranks.push_back(child);
  }
  auto const status = wait_for(ranks);
  return ranks.size() == options.ranks ? status : 1;
}
