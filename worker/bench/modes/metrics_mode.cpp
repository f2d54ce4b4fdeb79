// The cost of counting: a call that is not counted, compared to one that is counted as a worker counts those of its
// programs, in turns.
#include <iostream>

#include "worker/bench/modes/contenders.hpp"
#include "worker/bench/modes/format.hpp"
#include "worker/bench/modes/modes.hpp"
#include "worker/bench/modes/sweep.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint64_t metrics_turns_min = 21;

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

}  // namespace

int run_metrics(Options const& options, std::vector<std::string> const& arguments) {
  if (!options.json)
    std::cout << format("%-14s %-18s %-5s %5s %10s %12s %12s %9s %8s", "op", "algorithm", "link", "ranks", "bytes",
                        "plain us", "counted us", "overhead", "correct")
              << std::endl;
  auto pace = pace_of(options);
  pace.turns_min = metrics_turns_min;
  bool right = true;
  auto const status =
      for_each_task(options, arguments, [&](Ranks& ranks, Task const& task, logging::ProgressLine& progress) -> Status {
        auto const contenders = asked_contenders(options, task, ranks.size());
        if (contenders.has_error()) return contenders.error();
        auto const& spec = contenders->front().spec;
        auto const samples = contest(2, pace, [&](std::size_t contender, std::uint64_t iterations) {
          return contender == 0 ? ranks.iterate(spec, iterations) : ranks.iterate_counted(spec, iterations);
        });
        if (samples.has_error()) return samples.error();
        right = right && (*samples)[0].correct && (*samples)[1].correct;
        progress.clear();
        std::cout << to_text(task, ranks.size(), spec.algorithm, *samples, options.json) << std::endl;
        return ok();
      });
  return exit_status(status, right);
}

}  // namespace chorus::bench
