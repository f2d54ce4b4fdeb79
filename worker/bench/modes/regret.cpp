#include "worker/bench/modes/regret.hpp"

#include <algorithm>
#include <numeric>

#include "worker/bench/modes/format.hpp"

namespace chorus::bench {

std::size_t Cell::best() const {
  std::size_t best = 0;
  for (std::size_t c = 1; c < contenders.size(); ++c)
    if (median_us(c) < median_us(best)) best = c;
  return best;
}

double Cell::median_us(std::size_t contender) const { return median(samples[contender].seconds) * 1e6; }

double Cell::cpu_us(std::size_t contender) const {
  auto const& sample = samples[contender];
  return sample.cpu_seconds / static_cast<double>(sample.seconds.size()) * 1e6;
}

double Cell::regret() const { return median_us(0) / median_us(best()) - 1; }

Regret summarize(std::vector<Cell> const& cells) {
  std::vector<double> regrets;
  for (auto const& cell : cells) regrets.push_back(cell.regret());
  if (regrets.empty()) return {};
  return {median(regrets), percentile(regrets, 1), regrets.size()};
}

std::string to_json(Cell const& cell, bool details) {
  auto const best = cell.best();
  auto text = format(R"({"op":"%s","ranks":%u,"bytes":%llu,"auto":"%s","auto_us":%.2f,"best":"%s","best_us":%.2f,)"
                     R"("regret":%.4f)",
                     std::string(name(cell.task.op)).c_str(), cell.ranks,
                     static_cast<unsigned long long>(cell.task.bytes()), label(cell.contenders.front().spec).c_str(),
                     cell.median_us(0), label(cell.contenders[best].spec).c_str(), cell.median_us(best), cell.regret());
  if (!details) return text + '}';
  std::vector<std::size_t> order(cell.contenders.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return cell.median_us(a) < cell.median_us(b); });
  text += R"(,"contenders":[)";
  for (auto const c : order) {
    if (c != order.front()) text += ',';
    text += format(R"({"algorithm":"%s","p50_us":%.2f,"predicted_us":%.2f,"cpu_us":%.2f,"iterations":%zu})",
                   label(cell.contenders[c].spec).c_str(), cell.median_us(c),
                   cell.contenders[c].predicted_seconds * 1e6, cell.cpu_us(c), cell.samples[c].seconds.size());
  }
  return text + "]}";
}

std::string to_json(Regret const& regret) {
  return format(R"({"median_regret":%.4f,"max_regret":%.4f,"cells":%zu})", regret.median, regret.max, regret.cells);
}

std::string regret_head() {
  return format("%-14s %5s %10s  %-24s %11s  %-24s %11s %8s", "op", "ranks", "size", "auto", "p50 us", "best", "p50 us",
                "regret");
}

std::string regret_row(Cell const& cell) {
  auto const best = cell.best();
  return format("%-14s %5u %10s  %-24s %11.2f  %-24s %11.2f %7.1f%%", std::string(name(cell.task.op)).c_str(),
                cell.ranks, readable_size(cell.task.bytes()).c_str(), label(cell.contenders.front().spec).c_str(),
                cell.median_us(0), label(cell.contenders[best].spec).c_str(), cell.median_us(best),
                cell.regret() * 100);
}

}  // namespace chorus::bench
