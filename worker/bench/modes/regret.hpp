// How much slower the choice of `auto` is than the best of all algorithms, both measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/bench/modes/contenders.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

// One task on one number of ranks.
struct Cell {
  Task task;
  std::uint32_t ranks = 0;
  std::vector<Contender> contenders;  // the first is the choice of `auto`
  std::vector<Sample> samples;        // of each contender

  [[nodiscard]] std::size_t best() const;  // the contender with the least median, the first of equals
  [[nodiscard]] double median_us(std::size_t contender) const;
  [[nodiscard]] double cpu_us(std::size_t contender) const;  // of all ranks together, per iteration
  [[nodiscard]] double regret() const;                       // 0: auto was best; 0.1: it takes a tenth longer
};

struct Regret {
  double median = 0;
  double max = 0;
  std::size_t cells = 0;
};
// Zeros for no cells.
[[nodiscard]] Regret summarize(std::vector<Cell> const& cells);

// {"op":..,"ranks":..,"bytes":..,"auto":..,"auto_us":..,"best":..,"best_us":..,"regret":..}, and with `details` also
// "contenders":[{"algorithm":..,"p50_us":..,"predicted_us":..,"cpu_us":..,
// "iterations":..}, ...], the fastest first.
[[nodiscard]] std::string to_json(Cell const& cell, bool details);
// {"median_regret":..,"max_regret":..,"cells":..}
[[nodiscard]] std::string to_json(Regret const& regret);

[[nodiscard]] std::string regret_head();
[[nodiscard]] std::string regret_row(Cell const& cell);

}  // namespace chorus::bench
