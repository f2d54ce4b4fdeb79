// chorus-bench: collectives between local processes, over the data plane's public C++ interface.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "collectives/model/select.hpp"
#include "worker/bench/ceiling.hpp"
#include "worker/bench/fleet.hpp"
#include "worker/bench/options.hpp"
#include "worker/bench/rank_process.hpp"
#include "worker/bench/report.hpp"

namespace chorus::bench {
namespace {

constexpr double seconds_per_size = 1;
constexpr int bad_usage = 2;

// Which plan to run for a size: what was asked for, or what the model takes.
Result<std::string> choose_plan(Options const& options, std::uint64_t bytes) {
  model::Wish wish;
  wish.algorithm = options.algorithm;
  std::vector<Locality> const one_host(options.ranks, Locality{"", "", "", "localhost"});
  auto const element = element_bytes(options.dtype);
  auto const choice = model::select(wish, one_host, bytes / element, element, model::Constants::defaults());
  if (choice.has_error()) return choice.error();
  auto const& spec = choice->spec;
  return spec.algorithm + ' ' + std::to_string(spec.root) + ' ' + std::to_string(spec.arity);
}

// Adds the slowest rank's times of some more iterations.
Status iterate(Fleet& fleet, std::uint64_t iterations, Measurement& measurement) {
  fleet.tell("iterate " + std::to_string(iterations));
  auto const answers = fleet.hear("times");
  if (answers.has_error()) return answers.error();
  std::vector<double> slowest(iterations);
  for (auto const& line : *answers) {
    std::istringstream words(line);
    int right = 0;
    words >> right;
    measurement.correct = measurement.correct && right == 1;
    for (auto& time : slowest) {
      double seconds = 0;
      words >> seconds;
      time = std::max(time, seconds);
    }
  }
  measurement.seconds.insert(measurement.seconds.end(), slowest.begin(), slowest.end());
  return ok();
}

Result<Measurement> measure(Options const& options, Fleet& fleet, std::uint64_t bytes) {
  auto const plan = choose_plan(options, bytes);
  if (plan.has_error()) return plan.error();
  fleet.tell("run " + std::to_string(bytes) + ' ' + *plan);
  if (auto const warm = fleet.hear("warm"); warm.has_error()) return warm.error();

  Measurement measurement;
  measurement.op = options.op;
  measurement.algorithm = plan->substr(0, plan->find(' '));
  measurement.link = "tcp";
  measurement.ranks = options.ranks;
  measurement.bytes = bytes;
  measurement.dtype = name(options.dtype);
  measurement.correct = true;
  // In batches, each as large as all before it, until the time or the number of iterations is used up.
  double spent = 0;
  while (spent < seconds_per_size && measurement.seconds.size() < options.iterations_max) {
    auto const so_far = measurement.seconds.size();
    auto const batch = std::min<std::uint64_t>(std::max<std::uint64_t>(so_far, 4), options.iterations_max - so_far);
    if (auto const iterated = iterate(fleet, batch, measurement); iterated.has_error()) return iterated.error();
    for (auto i = so_far; i < measurement.seconds.size(); ++i) spent += measurement.seconds[i];
  }
  return measurement;
}

int fail(Error const& error) {
  std::cerr << "chorus-bench: " << error.detail << "\n";
  return 1;
}

int run_fleet(Options const& options, std::vector<std::string> const& arguments) {
  auto started = Fleet::start(arguments, options.ranks);
  if (started.has_error()) return fail(started.error());
  auto& fleet = *started;
  auto const urls = fleet.hear("url");
  if (urls.has_error()) return fail(urls.error());
  std::string peers = "peers";
  for (auto const& url : *urls) peers += ' ' + url;
  fleet.tell(peers);
  bool correct = true;
  if (!options.json) std::cout << table_head() << std::endl;
  for (auto const bytes : options.sizes) {
    auto const measurement = measure(options, fleet, bytes);
    if (measurement.has_error()) return fail(measurement.error());
    std::cout << (options.json ? to_json(*measurement) : table_row(*measurement)) << std::endl;
    correct = correct && measurement->correct;
  }
  fleet.finish();
  return correct ? 0 : 1;
}

int run_ceiling(Options const& options) {
  auto const ceiling = measure_ceiling(options.segment_bytes != 0 ? options.segment_bytes : 262144);
  if (ceiling.has_error()) return fail(ceiling.error());
  std::printf(options.json ? "{\"round_trip_us\":%.2f,\"one_way_GBps\":%.4g,\"both_ways_GBps\":%.4g}\n"
                           : "round trip %.2f us, one way %.3f GB/s, both ways at once %.3f GB/s each\n",
              ceiling->round_trip_us, ceiling->one_way_GBps, ceiling->both_ways_GBps);
  return 0;
}

// Empty, or what is wrong with the options together.
std::string check(Options const& options) {
  if (options.op != "all_reduce") return "--op " + options.op + " is not in this build; all_reduce is";
  if (options.link == "shm") return "--link shm is not in this build; tcp and auto are";
  for (auto const bytes : options.sizes)
    if (bytes % element_bytes(options.dtype) != 0)
      return std::to_string(bytes) + " bytes are no whole number of " + std::string(name(options.dtype)) + " elements";
  return {};
}

int run(int argc, char** argv) {
  Options options;
  std::string sizes = "4,1K,1M,64M", dtype = "f32";
  std::int64_t spin_us = -1;
  int rank_process = -1;
  CLI::App app("Measures collectives between processes of this machine", "chorus-bench");
  app.add_option("--op", options.op, "the collective");
  app.add_option("--ranks", options.ranks, "processes to start")->check(CLI::Range(1u, 256u));
  app.add_option("--link", options.link, "shm, tcp or auto")->check(CLI::IsMember({"shm", "tcp", "auto"}));
  app.add_option("--bytes", sizes, "sizes of one rank's vector, like 4,1K,1M,64M");
  app.add_option("--algorithm", options.algorithm, "an algorithm's name, or auto");
  app.add_option("--dtype", dtype, "element type");
  app.add_option("--iterations", options.iterations_max, "at most so many per size, and about a second's worth")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "iterations before those that count");
  app.add_option("--segment-bytes", options.segment_bytes, "pipelining unit");
  app.add_option("--window", options.window, "segments per link that are handed over at a time");
  app.add_option("--eager-bytes", options.eager_bytes, "sent without waiting for a grant, per link and run");
  app.add_option("--spin-us", spin_us, "how long an idle data plane polls before it blocks");
  app.add_flag("--json", options.json, "one JSON object per line");
  app.add_flag("--ceiling", options.ceiling, "measure the machine's TCP without Chorus instead");
  app.add_option("--rank-process", rank_process)->group("");
  CLI11_PARSE(app, argc, argv);

  auto const usage = [](std::string const& why) {
    std::cerr << "chorus-bench: " << why << "\n";
    return bad_usage;
  };
  auto const parsed_sizes = parse_sizes(sizes);
  if (parsed_sizes.has_error()) return usage(parsed_sizes.error().detail);
  options.sizes = *parsed_sizes;
  auto const parsed_dtype = parse_dtype(dtype);
  if (!parsed_dtype) return usage("'" + dtype + "' is not a dtype");
  options.dtype = *parsed_dtype;
  options.spin = std::chrono::microseconds(spin_us);
  if (auto const wrong = check(options); !wrong.empty()) return usage(wrong);

  std::signal(SIGPIPE, SIG_IGN);
  if (rank_process >= 0) return run_rank(options, static_cast<plan::Rank>(rank_process), LineReader(3), LineWriter(4));
  if (options.ceiling) return run_ceiling(options);
  return run_fleet(options, {argv, argv + argc});
}

}  // namespace
}  // namespace chorus::bench

int main(int argc, char** argv) { return chorus::bench::run(argc, argv); }
