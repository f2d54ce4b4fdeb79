// Many small tensors: a call for each, and one for all, in turns.
#include <iostream>

#include "worker/bench/contenders.hpp"
#include "worker/bench/contest.hpp"
#include "worker/bench/format.hpp"
#include "worker/bench/modes.hpp"
#include "worker/bench/ranks.hpp"

namespace chorus::bench {
namespace {

struct FusedCell {
  Task task;  // of one tensor
  std::uint32_t ranks = 0, tensors = 0;
  std::string separate_by, fused_by;
  Sample separate, fused;
  [[nodiscard]] bool correct() const { return separate.correct && fused.correct; }
};

Result<plan::Spec> spec_of(Options const& options, Task const& task, std::uint32_t ranks) {
  auto const contenders = asked_contenders(options, task, ranks);
  if (contenders.has_error()) return contenders.error();
  return contenders->front().spec;
}

Result<FusedCell> measure(Options const& options, Ranks& ranks, Task const& task) {
  auto whole = task;
  whole.elements *= options.fused;
  auto const separate = spec_of(options, task, ranks.size());
  if (separate.has_error()) return separate.error();
  auto const fused = spec_of(options, whole, ranks.size());
  if (fused.has_error()) return fused.error();
  Pace pace;
  pace.seconds = options.seconds;
  pace.iterations_max = options.iterations_max;
  pace.warmup = options.warmup;
  auto samples = contest(2, pace, [&](std::size_t contender, std::uint64_t iterations) {
    return contender == 0 ? ranks.iterate(*separate, iterations) : ranks.iterate_fused(*fused, iterations);
  });
  if (samples.has_error()) return samples.error();
  return FusedCell{task,
                   ranks.size(),
                   options.fused,
                   separate->algorithm,
                   fused->algorithm,
                   std::move((*samples)[0]),
                   std::move((*samples)[1])};
}

std::string to_text(FusedCell const& cell, bool json) {
  auto const separate_us = median(cell.separate.seconds) * 1e6, fused_us = median(cell.fused.seconds) * 1e6;
  if (!json)
    return format("%-5s %5u %7u %10s  %-18s %12.2f  %-18s %12.2f %8.2f %8s", cell.fused.link.c_str(), cell.ranks,
                  cell.tensors, readable_size(cell.task.bytes()).c_str(), cell.separate_by.c_str(), separate_us,
                  cell.fused_by.c_str(), fused_us, separate_us / fused_us, cell.correct() ? "yes" : "NO");
  return format(R"({"op":"all_reduce","link":"%s","ranks":%u,"tensors":%u,"bytes":%llu,"dtype":"%s",)"
                R"("separate_algorithm":"%s","separate_p50_us":%.2f,"fused_algorithm":"%s","fused_p50_us":%.2f,)"
                R"("ratio":%.2f,"correct":%s})",
                cell.fused.link.c_str(), cell.ranks, cell.tensors, static_cast<unsigned long long>(cell.task.bytes()),
                std::string(name(cell.task.dtype)).c_str(), cell.separate_by.c_str(), separate_us,
                cell.fused_by.c_str(), fused_us, separate_us / fused_us, cell.correct() ? "true" : "false");
}

Status measure_all(Options const& options, std::vector<std::string> const& arguments, bool& right) {
  for (auto const count : options.ranks) {
    auto ranks = Ranks::start(arguments, count);
    if (ranks.has_error()) return ranks.error();
    for (auto const bytes : options.sizes) {
      auto const task = make_task(Op::all_reduce, options.dtype, bytes, count, 0);
      if (auto const status = ranks->prepare(task); status.has_error()) return status.error();
      auto const cell = measure(options, *ranks, task);
      if (cell.has_error()) return cell.error();
      right = cell->correct() && right;
      std::cout << to_text(*cell, options.json) << std::endl;
    }
    ranks->finish();
  }
  return ok();
}

}  // namespace

int run_fused(Options const& options, std::vector<std::string> const& arguments) {
  if (!options.json)
    std::cout << format("%-5s %5s %7s %10s  %-18s %12s  %-18s %12s %8s %8s", "link", "ranks", "tensors", "each",
                        "separate by", "p50 us", "fused by", "p50 us", "ratio", "correct")
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
