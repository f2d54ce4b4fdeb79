// Many small tensors: one call for each, compared to one for all, in turns.
#include <iostream>

#include "worker/bench/modes/contenders.hpp"
#include "worker/bench/modes/format.hpp"
#include "worker/bench/modes/modes.hpp"
#include "worker/bench/modes/sweep.hpp"

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
  auto samples = contest(2, pace_of(options), [&](std::size_t contender, std::uint64_t iterations) {
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

}  // namespace

int run_fused(Options const& options, std::vector<std::string> const& arguments) {
  if (!options.json)
    std::cout << format("%-5s %5s %7s %10s  %-18s %12s  %-18s %12s %8s %8s", "link", "ranks", "tensors", "each",
                        "separate by", "p50 us", "fused by", "p50 us", "ratio", "correct")
              << std::endl;
  auto reductions = options;
  reductions.ops = {Op::all_reduce};
  reductions.in_place = true;
  bool right = true;
  auto const visit = [&](Ranks& ranks, Task const& task, logging::ProgressLine& progress) -> Status {
    auto const cell = measure(reductions, ranks, task);
    if (cell.has_error()) return cell.error();
    right = cell->correct() && right;
    progress.clear();
    std::cout << to_text(*cell, options.json) << std::endl;
    return ok();
  };
  return exit_status(for_each_task(reductions, arguments, visit), right);
}

}  // namespace chorus::bench
