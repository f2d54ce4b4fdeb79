#include "worker/bench/modes/modes.hpp"

#include <iostream>

#include "http/json/json.hpp"
#include "worker/bench/calibration/calibrate.hpp"
#include "worker/bench/calibration/ceiling.hpp"
#include "worker/bench/modes/format.hpp"
#include "worker/bench/modes/refine.hpp"
#include "worker/bench/modes/regret.hpp"
#include "worker/bench/modes/report.hpp"
#include "worker/bench/modes/sweep.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint64_t regret_turns_min = 7;
// Programs call in loops: the first call after a pause says little about the others.
constexpr std::uint64_t iterations_per_lesson = 11;

Result<std::vector<Sample>> measure(Ranks& ranks, std::vector<Contender> const& contenders, Pace const& pace) {
  return contest(contenders.size(), pace, [&](std::size_t contender, std::uint64_t iterations) {
    return ranks.iterate(contenders[contender].spec, iterations);
  });
}

// The best of many is partly the luckiest. If the choice looks bad, it and the best are measured again, alone and for
// longer, as long as that shows another one to be the best.
Status reconsider(Ranks& ranks, Pace pace, Cell& cell) {
  constexpr double looks_bad = 0.1;
  constexpr int times_max = 3;
  pace.only_the_best = false;
  pace.seconds *= 4;
  pace.turns_min = 3 * regret_turns_min;
  auto before = cell.contenders.size();
  for (int times = 0; times < times_max && cell.regret() > looks_bad && cell.best() != before; ++times) {
    before = cell.best();
    auto again = measure(ranks, {cell.contenders[0], cell.contenders[before]}, pace);
    if (again.has_error()) return again.error();
    for (auto const& [contender, sample] : {std::pair(std::size_t{0}, &(*again)[0]), std::pair(before, &(*again)[1])}) {
      sample->correct = sample->correct && cell.samples[contender].correct;
      cell.samples[contender] = std::move(*sample);
    }
  }
  return ok();
}

// Prints which results were wrong.
bool all_right(Task const& task, std::vector<Contender> const& contenders, std::vector<Sample> const& samples) {
  bool right = true;
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (samples[c].correct) continue;
    right = false;
    std::cerr << "chorus-bench: " << label(contenders[c].spec) << " gave a wrong result of " << to_words(task) << "\n";
  }
  return right;
}

}  // namespace

int run_measure(Options const& options, std::vector<std::string> const& arguments) {
  bool right = true;
  if (!options.json) std::cout << table_head() << std::endl;
  auto const status =
      for_each_task(options, arguments, [&](Ranks& ranks, Task const& task, logging::ProgressLine& progress) -> Status {
        auto const contenders = asked_contenders(options, task, ranks.size());
        if (contenders.has_error()) return contenders.error();
        auto samples = measure(ranks, *contenders, pace_of(options));
        if (samples.has_error()) return samples.error();
        progress.clear();
        right = all_right(task, *contenders, *samples) && right;
        for (std::size_t c = 0; c < contenders->size(); ++c) {
          auto const& spec = (*contenders)[c].spec;
          Measurement const m{task, spec.algorithm, (*samples)[c].link, ranks.size(), std::move((*samples)[c])};
          std::cout << (options.json ? to_json(m) : table_row(m)) << std::endl;
        }
        return ok();
      });
  if (status.has_error()) return fail(status.error());
  return right ? 0 : 1;
}

int run_regret(Options const& options, std::vector<std::string> const& arguments) {
  auto pace = pace_of(options);
  pace.turns_min = regret_turns_min;
  pace.only_the_best = true;
  std::vector<Cell> cells;
  bool right = true;
  if (!options.json) std::cout << regret_head() << std::endl;
  auto const status =
      for_each_task(options, arguments, [&](Ranks& ranks, Task const& task, logging::ProgressLine& progress) -> Status {
        auto contenders = all_contenders(options, task, ranks.size());
        if (contenders.has_error()) return contenders.error();
        auto const run_once = [&](plan::Spec const& spec) -> Result<double> {
          auto const sample = ranks.iterate(spec, iterations_per_lesson);
          if (sample.has_error()) return sample.error();
          return median(sample->seconds);
        };
        if (auto const refined = refine(*contenders, task, options.refine, run_once); refined.has_error())
          return refined;
        auto samples = measure(ranks, *contenders, pace);
        if (samples.has_error()) return samples.error();
        cells.push_back({task, ranks.size(), std::move(*contenders), std::move(*samples)});
        if (auto const reconsidered = reconsider(ranks, pace, cells.back()); reconsidered.has_error())
          return reconsidered;
        progress.clear();
        right = all_right(task, cells.back().contenders, cells.back().samples) && right;
        std::cout << (options.json ? to_json(cells.back(), options.details) : regret_row(cells.back())) << std::endl;
        return ok();
      });
  if (status.has_error()) return fail(status.error());
  auto const regret = summarize(cells);
  if (options.json)
    std::cout << to_json(regret) << std::endl;
  else
    std::cout << format("%zu cells: median regret %.1f%%, greatest %.1f%%", regret.cells, regret.median * 100,
                        regret.max * 100)
              << std::endl;
  return right ? 0 : 1;
}

int run_calibrate(Options const& options, std::vector<std::string> const& arguments) {
  auto const calibration = calibrate(options, arguments);
  if (calibration.has_error()) return fail(calibration.error());
  std::cout << http::encode(calibration->constants) << std::endl;
  std::cerr << format("a call takes %.1f us of a core per rank; half of the measurements are within %.0f%%\n",
                      calibration->found.call_cpu_s * 1e6, calibration->found.error * 100);
  return 0;
}

int run_ceiling(Options const& options) {
  auto const ceiling = measure_ceiling(options.segment_bytes != 0 ? options.segment_bytes : 262144);
  if (ceiling.has_error()) return fail(ceiling.error());
  std::cout << format(options.json ? "{\"round_trip_us\":%.2f,\"one_way_GBps\":%.4g,\"both_ways_GBps\":%.4g}"
                                   : "round trip %.2f us, one way %.3f GB/s, both ways at once %.3f GB/s each",
                      ceiling->round_trip_us, ceiling->one_way_GBps, ceiling->both_ways_GBps)
            << std::endl;
  return 0;
}

}  // namespace chorus::bench
