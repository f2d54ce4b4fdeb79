#include "worker/bench/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "worker/bench/options.hpp"

namespace chorus::bench {
namespace {

struct Figures {
  double p50_us, p99_us, algbw, busbw;
};

Figures figures(Measurement const& m) {
  auto const p50 = percentile(m.seconds, 0.5), p99 = percentile(m.seconds, 0.99);
  auto const algbw = static_cast<double>(m.bytes) / p50 / 1e9;
  return {p50 * 1e6, p99 * 1e6, algbw, algbw * 2 * (m.ranks - 1) / m.ranks};
}

template <class... Values>
std::string format(char const* pattern, Values... values) {
  std::array<char, 512> text{};
  auto const size = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), std::min(static_cast<std::size_t>(std::max(size, 0)), text.size() - 1)};
}

}  // namespace

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  auto const rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

std::string to_json(Measurement const& m) {
  auto const f = figures(m);
  return format(R"({"op":"%s","algorithm":"%s","link":"%s","ranks":%u,"bytes":%llu,"dtype":"%s","iterations":%zu,)"
                R"("p50_us":%.2f,"p99_us":%.2f,"algbw_GBps":%.4g,"busbw_GBps":%.4g,"correct":%s})",
                m.op.c_str(), m.algorithm.c_str(), m.link.c_str(), m.ranks, static_cast<unsigned long long>(m.bytes),
                m.dtype.c_str(), m.seconds.size(), f.p50_us, f.p99_us, f.algbw, f.busbw, m.correct ? "true" : "false");
}

std::string table_head() {
  return format("%10s  %-12s %5s %6s %11s %11s %11s %11s %8s", "size", "algorithm", "ranks", "iters", "p50 us",
                "p99 us", "algbw GB/s", "busbw GB/s", "correct");
}

std::string table_row(Measurement const& m) {
  auto const f = figures(m);
  return format("%10s  %-12s %5u %6zu %11.2f %11.2f %11.3f %11.3f %8s", readable_size(m.bytes).c_str(),
                m.algorithm.c_str(), m.ranks, m.seconds.size(), f.p50_us, f.p99_us, f.algbw, f.busbw,
                m.correct ? "yes" : "NO");
}

}  // namespace chorus::bench
