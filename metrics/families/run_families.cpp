#include "metrics/families/run_families.hpp"

#include <algorithm>

namespace chorus::metrics {
namespace {

constexpr std::array<std::string_view, 3> result_names{"succeeded", "failed", "cancelled"};

template <std::size_t bounds>
void add(Histogram<bounds>& to, Histogram<bounds> const& more) {
  for (std::size_t i = 0; i < to.counts.size(); ++i) to.counts[i] += more.counts[i];
  to.sum += more.sum;
}

void add(RunTotals& to, RunTotals const& more) {
  for (std::size_t i = 0; i < to.results.size(); ++i) to.results[i] += more.results[i];
  add(to.seconds, more.seconds);
  add(to.step_seconds, more.step_seconds);
  add(to.bus_bandwidth, more.bus_bandwidth);
  add(to.algorithm_bandwidth, more.algorithm_bandwidth);
}

using Runs = std::map<LedgerTotals::Kind, RunTotals>;

Runs folded(Runs const& runs, std::size_t kinds_max) {
  Runs kept;
  for (auto const& [kind, totals] : runs) {
    auto place = kind;
    if (kept.size() >= kinds_max) place = {kind.op, "other", 0};
    add(kept[place], totals);
  }
  return kept;
}

std::string_view class_name(std::size_t index) {
  return index < size_classes.size() ? size_classes[index].second : greatest_size_class;
}

template <std::size_t bounds>
void add_if_any(prometheus::MetricFamily& family, Id id, std::initializer_list<std::string_view> labels,
                Histogram<bounds> const& histogram) {
  if (std::ranges::any_of(histogram.counts, [](auto count) { return count != 0; }))
    add_histogram(family, id, labels, histogram.counts, histogram.sum);
}

void add_sized(Families& families, Runs const& runs) {
  auto seconds = make_family(Id::collective_duration);
  auto bus = make_family(Id::collective_bus_bandwidth);
  auto plain = make_family(Id::collective_algorithm_bandwidth);
  for (auto const& [kind, run] : runs) {
    auto const op = name(kind.op);
    auto const size = class_name(kind.size_class);
    add_if_any(seconds, Id::collective_duration, {op, kind.algorithm, size}, run.seconds);
    add_if_any(bus, Id::collective_bus_bandwidth, {op, kind.algorithm, size}, run.bus_bandwidth);
    add_if_any(plain, Id::collective_algorithm_bandwidth, {op, kind.algorithm, size}, run.algorithm_bandwidth);
  }
  for (auto* family : {&seconds, &bus, &plain}) families.push_back(std::move(*family));
}

// Adds the families without a size label: all sizes together.
void add_unsized(Families& families, Runs const& runs) {
  std::map<std::pair<Op, std::string_view>, RunTotals> by_algorithm;
  for (auto const& [kind, run] : runs) add(by_algorithm[{kind.op, kind.algorithm}], run);
  auto ended = make_family(Id::collectives);
  auto steps = make_family(Id::collective_step_duration);
  for (auto const& [kind, run] : by_algorithm) {
    auto const op = name(kind.first);
    for (std::size_t r = 0; r < run.results.size(); ++r)
      if (run.results[r] != 0)
        add_value(ended, Id::collectives, {op, kind.second, result_names[r]}, static_cast<double>(run.results[r]));
    add_if_any(steps, Id::collective_step_duration, {op, kind.second}, run.step_seconds);
  }
  families.push_back(std::move(ended));
  families.push_back(std::move(steps));
}

}  // namespace

Families run_families(LedgerTotals const& totals, std::size_t kinds_max) {
  Families families;
  auto const runs = folded(totals.runs, kinds_max);
  add_sized(families, runs);
  add_unsized(families, runs);
  auto active = make_family(Id::collectives_active);
  auto waits = make_family(Id::collective_wait);
  for (auto op : all_ops) {
    auto const i = static_cast<std::size_t>(op);
    auto const running = totals.begun[i] - std::min(totals.begun[i], totals.ended[i]);
    add_value(active, Id::collectives_active, {name(op)}, static_cast<double>(running));
    if (totals.begun[i] != 0) add_value(waits, Id::collective_wait, {name(op)}, totals.wait_seconds[i]);
  }
  auto errors = make_family(Id::collective_errors);
  for (auto const& [kind, count] : totals.errors)
    add_value(errors, Id::collective_errors, {name(kind.first), kind.second}, static_cast<double>(count));
  auto bytes = make_family(Id::reduce_bytes);
  auto seconds = make_family(Id::reduce_seconds);
  for (auto const& [device, reductions] : {std::pair{"cpu", &totals.reductions}, {"cuda", &totals.gpu_reductions}})
    for (auto dtype : all_dtypes) {
      auto const& reduced = (*reductions)[static_cast<std::size_t>(dtype)];
      if (reduced.bytes == 0) continue;
      add_value(bytes, Id::reduce_bytes, {device, name(dtype)}, static_cast<double>(reduced.bytes));
      add_value(seconds, Id::reduce_seconds, {device, name(dtype)}, reduced.seconds);
    }
  auto compressed = make_family(Id::compressed_bytes);
  auto wire = make_family(Id::compressed_wire_bytes);
  for (auto format : all_wire_formats) {
    auto const& codes = totals.codes[static_cast<std::size_t>(format)];
    if (codes.bytes == 0) continue;
    add_value(compressed, Id::compressed_bytes, {name(format)}, static_cast<double>(codes.bytes));
    add_value(wire, Id::compressed_wire_bytes, {name(format)}, static_cast<double>(codes.wire_bytes));
  }
  for (auto* family : {&active, &waits, &errors, &bytes, &seconds, &compressed, &wire})
    families.push_back(std::move(*family));
  return families;
}

}  // namespace chorus::metrics
