#include "metrics/runs/run_ledger.hpp"

#include <algorithm>
#include <bit>

#include "metrics/catalogue/catalogue.hpp"
#include "metrics/runs/bandwidth.hpp"

namespace chorus::metrics {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

template <class Value>
void add(std::atomic<Value>& to, Value amount) {
  to.store(to.load(relaxed) + amount, relaxed);  // one writer
}

// Returns the least k with value <= first * 2^k, at most `end`, from the exponent of the number.
std::size_t doublings(double value, double first_inverse, std::size_t end) {
  auto const ratio = value * first_inverse;
  if (!(ratio > 1)) return 0;
  auto const bits = std::bit_cast<std::uint64_t>(ratio);
  auto const exponent = (bits >> 52) - 1023;
  bool const is_beyond = (bits & ((std::uint64_t{1} << 52) - 1)) != 0;
  return std::min(static_cast<std::size_t>(exponent) + (is_beyond ? 1 : 0), end);
}

// The same for first * (2^each)^k.
template <std::size_t bounds, unsigned each>
class Tally {
 public:
  void count(double value, double first_inverse) {
    add(counts_[(doublings(value, first_inverse, bounds * each) + each - 1) / each], std::uint64_t{1});
    add(sum_, value);
  }
  void add_to(Histogram<bounds>& histogram) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) histogram.counts[i] += counts_[i].load(relaxed);
    histogram.sum += sum_.load(relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, bounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

std::size_t index_of_class(std::uint64_t bytes) {
  std::size_t i = 0;
  while (i < size_classes.size() && bytes > size_classes[i].first) ++i;
  return i;
}

std::size_t index_of_result(std::string_view result) { return result == "succeeded" ? 0 : result == "failed" ? 1 : 2; }

}  // namespace

static_assert(size_class_count == size_classes.size() + 1);

struct RunLedger::Cell {
  Cell(FinishedRun const& run, std::size_t c) : kind{run.op, std::string(run.algorithm), c} {}

  LedgerTotals::Kind const kind;
  std::array<std::atomic<std::uint64_t>, 3> results{};
  Tally<21, 1> seconds;
  Tally<13, 2> step_seconds;
  Tally<16, 1> bus_bandwidth, algorithm_bandwidth;
  std::uint32_t ranks = 0;
  double factor = 0;  // bus_factor for `ranks`

  [[nodiscard]] bool is(FinishedRun const& run, std::size_t c) const {
    return kind.op == run.op && kind.size_class == c && kind.algorithm == run.algorithm;
  }
};

RunLedger::RunLedger() = default;
RunLedger::~RunLedger() = default;

RunLedger::Cell& RunLedger::cell_of(FinishedRun const& run) {
  auto const c = index_of_class(run.bytes);
  if (last_ != nullptr && last_->is(run, c)) return *last_;
  auto found = std::find_if(cells_.begin(), cells_.end(), [&](Cell const& cell) { return cell.is(run, c); });
  if (found == cells_.end()) {
    std::lock_guard const lock(mutex_);
    found = cells_.emplace(cells_.end(), run, c);
  }
  last_ = &*found;
  return *found;
}

void RunLedger::begun(Op op) { add(begun_[static_cast<std::size_t>(op)], std::uint64_t{1}); }

void RunLedger::ended(FinishedRun const& run) {
  auto const op = static_cast<std::size_t>(run.op);
  add(ended_[op], std::uint64_t{1});
  auto& cell = cell_of(run);
  auto const result = index_of_result(run.result);
  add(cell.results[result], std::uint64_t{1});
  if (result != 0) {
    std::lock_guard const lock(mutex_);
    ++errors_[{run.op, std::string(run.kind)}];
    return;
  }
  auto const& did = run.statistics;
  auto const seconds = did.seconds();
  cell.seconds.count(seconds, 1e4);
  if (did.steps > 0) cell.step_seconds.count(seconds / did.steps, 1e6);
  if (did.wait_seconds > 0) add(wait_seconds_[op], did.wait_seconds);
  if (did.reduced.bytes > 0) {
    add(reduced_bytes_[static_cast<std::size_t>(run.dtype)], did.reduced.bytes);
    add(reduce_seconds_[static_cast<std::size_t>(run.dtype)], did.reduced.seconds);
  }
  if (run.gpu_reduced.bytes > 0) {
    add(gpu_reduced_bytes_[static_cast<std::size_t>(run.dtype)], run.gpu_reduced.bytes);
    add(gpu_reduce_seconds_[static_cast<std::size_t>(run.dtype)], run.gpu_reduced.seconds);
  }
  if (run.compression) {
    add(compressed_bytes_[static_cast<std::size_t>(*run.compression)], run.bytes);
    add(wire_bytes_[static_cast<std::size_t>(*run.compression)], run.wire_bytes);
  }
  if (cell.ranks != run.ranks) {
    cell.ranks = run.ranks;
    cell.factor = bus_factor(run.op, run.ranks);
  }
  if (!(seconds > 0) || cell.factor == 0 || run.bytes == 0) return;
  auto const bandwidth = static_cast<double>(run.bytes) / seconds;
  cell.algorithm_bandwidth.count(bandwidth, 1e-7);
  cell.bus_bandwidth.count(bandwidth * cell.factor, 1e-7);
}

void RunLedger::add_to(LedgerTotals& totals) const {
  std::lock_guard const lock(mutex_);
  for (auto const& cell : cells_) {
    auto& run = totals.runs[cell.kind];
    for (std::size_t r = 0; r < cell.results.size(); ++r) run.results[r] += cell.results[r].load(relaxed);
    cell.seconds.add_to(run.seconds);
    cell.step_seconds.add_to(run.step_seconds);
    cell.bus_bandwidth.add_to(run.bus_bandwidth);
    cell.algorithm_bandwidth.add_to(run.algorithm_bandwidth);
  }
  for (std::size_t op = 0; op < all_ops.size(); ++op) {
    totals.begun[op] += begun_[op].load(relaxed);
    totals.ended[op] += ended_[op].load(relaxed);
    totals.wait_seconds[op] += wait_seconds_[op].load(relaxed);
  }
  for (std::size_t d = 0; d < all_dtypes.size(); ++d) {
    totals.reductions[d].bytes += reduced_bytes_[d].load(relaxed);
    totals.reductions[d].seconds += reduce_seconds_[d].load(relaxed);
    totals.gpu_reductions[d].bytes += gpu_reduced_bytes_[d].load(relaxed);
    totals.gpu_reductions[d].seconds += gpu_reduce_seconds_[d].load(relaxed);
  }
  for (std::size_t f = 0; f < all_wire_formats.size(); ++f) {
    totals.codes[f].bytes += compressed_bytes_[f].load(relaxed);
    totals.codes[f].wire_bytes += wire_bytes_[f].load(relaxed);
  }
  for (auto const& [kind, count] : errors_) totals.errors[kind] += count;
}

}  // namespace chorus::metrics
