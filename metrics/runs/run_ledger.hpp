// Totals of runs, counted by the thread that runs them. Counting a run costs some twenty stores to memory that only
// this thread writes. A scrape reads all ledgers and adds them up.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "metrics/runs/finished_run.hpp"

namespace chorus::metrics {

inline constexpr std::size_t size_class_count = 8;

// A histogram whose bounds are first * factor^k. The last count is of the values beyond the last bound.
template <std::size_t bounds>
struct Histogram {
  std::array<std::uint64_t, bounds + 1> counts{};
  double sum = 0;
};

// Totals of the runs with one op, algorithm and size class. Bounds as in the catalogue.
struct RunTotals {
  std::array<std::uint64_t, 3> results{};  // succeeded, failed, cancelled
  Histogram<21> seconds;
  Histogram<13> step_seconds;
  Histogram<16> bus_bandwidth, algorithm_bandwidth;
};

struct ReduceTotals {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

struct CodeTotals {
  std::uint64_t bytes = 0;       // of the vectors
  std::uint64_t wire_bytes = 0;  // of their codes
};

struct LedgerTotals {
  struct Kind {
    Op op = Op::all_reduce;
    std::string algorithm;
    std::size_t size_class = 0;
    friend auto operator<=>(Kind const&, Kind const&) = default;
  };
  std::map<Kind, RunTotals> runs;
  std::array<std::uint64_t, all_ops.size()> begun{}, ended{};
  std::array<double, all_ops.size()> wait_seconds{};
  std::array<ReduceTotals, all_dtypes.size()> reductions, gpu_reductions;
  std::array<CodeTotals, all_wire_formats.size()> codes;       // of runs that succeeded
  std::map<std::pair<Op, std::string>, std::uint64_t> errors;  // by kind of problem
};

// One thread writes at a time; any thread may read. A reader may see part of the run that is being counted.
class RunLedger {
 public:
  RunLedger();
  ~RunLedger();
  RunLedger(RunLedger const&) = delete;
  RunLedger& operator=(RunLedger const&) = delete;

  void begun(Op op);
  void ended(FinishedRun const& run);

  // Any thread.
  void add_to(LedgerTotals& totals) const;

 private:
  struct Cell;
  Cell& cell_of(FinishedRun const& run);

  // The writer alone changes cells_ and errors_, under the lock, and reads cells_ without it.
  mutable std::mutex mutex_;
  std::list<Cell> cells_;
  Cell* last_ = nullptr;
  std::array<std::atomic<std::uint64_t>, all_ops.size()> begun_{}, ended_{};
  std::array<std::atomic<double>, all_ops.size()> wait_seconds_{};
  std::array<std::atomic<std::uint64_t>, all_dtypes.size()> reduced_bytes_{};
  std::array<std::atomic<double>, all_dtypes.size()> reduce_seconds_{};
  std::array<std::atomic<std::uint64_t>, all_dtypes.size()> gpu_reduced_bytes_{};
  std::array<std::atomic<double>, all_dtypes.size()> gpu_reduce_seconds_{};
  std::array<std::atomic<std::uint64_t>, all_wire_formats.size()> compressed_bytes_{}, wire_bytes_{};
  std::map<std::pair<Op, std::string>, std::uint64_t> errors_;
};

}  // namespace chorus::metrics
