// What counting costs: a call that is not counted, and one that is counted as a worker counts those of its programs, in
// turns.
#include <iostream>

#include "worker/bench/contenders.hpp"
#include "worker/bench/contest.hpp"
#include "worker/bench/format.hpp"
#include "worker/bench/modes.hpp"
#include "worker/bench/ranks.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint64_t turns_min = 21;

std::string to_text(Task const& task, std::uint32_t ranks, std::string const& algorithm,
                    std::vector<Sample> const& samples, bool json) {
  auto const plain_us = median(samples[0].seconds) * 1e6, counted_us = median(samples[1].seconds) * 1e6;
  return format(json ? R"({"op":"%s","algorithm":"%s","link":"%s","ranks":%u,"bytes":%llu,"plain_p50_us":%.3f,)"
                       R"("counted_p50_us":%.3f,"overhead":%.4f,"correct":%s})"
                     : "%-14s %-18s %-5s %5u %10llu %12.3f %12.3f %9.4f %8s",
                std::string(name(task.op)).c_str(), algorithm.c_str(), samples[0].link.c_str(), ranks,
                static_cast<unsigned long long>(task.bytes()), plain_us, counted_us, counted_us / plain_us - 1,
                samples[0].correct && samples[1].correct ? "true" : "false");
}

Status measure_all(Options const& options, std::vector<std::string> const& arguments, bool& right) {
  Pace pace;
  pace.seconds = options.seconds;
  pace.turns_min = turns_min;
  pace.iterations_max = options.iterations_max;
  pace.warmup = options.warmup;
  for (auto const count : options.ranks) {
    auto ranks = Ranks::start(arguments, count);
    if (ranks.has_error()) return ranks.error();
    for (auto const op : options.ops)
      for (auto const bytes : options.sizes) {
        auto const task = make_task(op, options.dtype, bytes, count, options.root.value_or(0));
        if (auto const status = ranks->prepare(task); status.has_error()) return status.error();
        auto const contenders = asked_contenders(options, task, count);
        if (contenders.has_error()) return contenders.error();
        auto const& spec = contenders->front().spec;
        auto const samples = contest(2, pace, [&](std::size_t contender, std::uint64_t iterations) {
          return contender == 0 ? ranks->iterate(spec, iterations) : ranks->iterate_counted(spec, iterations);
        });
        if (samples.has_error()) return samples.error();
        right = right && (*samples)[0].correct && (*samples)[1].correct;
        std::cout << to_text(task, count, spec.algorithm, *samples, options.json) << std::endl;
      }
    ranks->finish();
  }
  return ok();
}

}  // namespace

int run_metrics(Options const& options, std::vector<std::string> const& arguments) {
  if (!options.json)
    std::cout << format("%-14s %-18s %-5s %5s %10s %12s %12s %9s %8s", "op", "algorithm", "link", "ranks", "bytes",
                        "plain us", "counted us", "overhead", "correct")
              << std::endl;
  bool right = true;
  if (auto const status = measure_all(options, arguments, right); status.has_error()) {
    std::cerr << "chorus-bench: " << status.error().detail << "\n";
    return 1;
  }
  if (!right) std::cerr << "chorus-bench: wrong result\n";
  return right ? 0 : 1;
}

}  // namespace chorus::bench
