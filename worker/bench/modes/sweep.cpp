#include "worker/bench/modes/sweep.hpp"

#include <algorithm>
#include <iostream>

namespace chorus::bench {
namespace {

// Long tasks are not judged by a single iteration.
constexpr std::uint64_t turns_min = 3;

// The tasks of an operation without repetitions: different sizes may give the same task.
std::vector<Task> tasks_of(Options const& options, Op op, std::uint32_t ranks) {
  std::vector<Task> tasks;
  for (auto const bytes : options.sizes) {
    auto task = make_task(op, options.dtype, bytes, ranks, options.root.value_or(0));
    task.compression = options.compression;
    if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) tasks.push_back(task);
  }
  return tasks;
}

}  // namespace

Status for_each_task(Options const& options, std::vector<std::string> const& arguments, Visit const& visit) {
  logging::ProgressLine progress;
  std::size_t begun = 0, all = 0;
  for (auto const count : options.ranks)
    for (auto const op : options.ops) all += tasks_of(options, op, count).size();
  for (auto const count : options.ranks) {
    auto ranks = Ranks::start(arguments, count);
    if (ranks.has_error()) return ranks.error();
    for (auto const op : options.ops)
      for (auto const& task : tasks_of(options, op, count)) {
        progress.show(std::to_string(++begun) + " of " + std::to_string(all) + ": " + std::string(name(op)) + " of " +
                      std::to_string(task.bytes()) + " bytes over " + std::to_string(count) + " ranks");
        if (auto const status = ranks->prepare(task); status.has_error()) return status.error();
        if (auto const status = visit(*ranks, task, progress); status.has_error()) return status.error();
      }
    ranks->finish();
  }
  return ok();
}

Pace pace_of(Options const& options) {
  Pace pace;
  pace.seconds = options.seconds;
  pace.turns_min = turns_min;
  pace.iterations_max = options.iterations_max;
  pace.warmup = options.warmup;
  return pace;
}

int fail(Error const& error) {
  std::cerr << "chorus-bench: " << error.detail << "\n";
  return 1;
}

int exit_status(Status const& status, bool right) {
  if (status.has_error()) return fail(status.error());
  if (!right) std::cerr << "chorus-bench: wrong result\n";
  return right ? 0 : 1;
}

}  // namespace chorus::bench
