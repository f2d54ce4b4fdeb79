#include "worker/bench/modes/report.hpp"

#include "worker/bench/modes/format.hpp"
#include "worker/bench/ranks/options.hpp"

namespace chorus::bench {
namespace {

struct Figures {
  double p50_us, p99_us, algbw, busbw;
};

Figures figures(Measurement const& m) {
  auto const p50 = percentile(m.sample.seconds, 0.5), p99 = percentile(m.sample.seconds, 0.99);
  auto const algbw = static_cast<double>(m.task.bytes()) / p50 / 1e9;
  return {p50 * 1e6, p99 * 1e6, algbw, algbw * busbw_factor(m.task.op, m.ranks)};
}

}  // namespace

double busbw_factor(Op op, std::uint32_t ranks) {
  auto const others = (static_cast<double>(ranks) - 1) / ranks;
  switch (op) {
    case Op::all_reduce:
      return 2 * others;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::gather:
    case Op::scatter:
      return others;
    case Op::reduce:
    case Op::broadcast:
    case Op::barrier:
      return 1;
  }
  return 1;
}

std::string to_json(Measurement const& m) {
  auto const f = figures(m);
  auto const compression =
      m.task.compression ? R"("compression":")" + std::string(name(*m.task.compression)) + "\"," : "";
  return format(R"({"op":"%s","algorithm":"%s","link":"%s","ranks":%u,"bytes":%llu,"dtype":"%s",%s"iterations":%zu,)"
                R"("p50_us":%.2f,"p99_us":%.2f,"algbw_GBps":%.4g,"busbw_GBps":%.4g,"correct":%s})",
                std::string(name(m.task.op)).c_str(), m.algorithm.c_str(), m.link.c_str(), m.ranks,
                static_cast<unsigned long long>(m.task.bytes()), std::string(name(m.task.dtype)).c_str(),
                compression.c_str(), m.sample.seconds.size(), f.p50_us, f.p99_us, f.algbw, f.busbw,
                m.sample.correct ? "true" : "false");
}

std::string table_head() {
  return format("%-14s %10s  %-18s %5s %6s %11s %11s %11s %11s %8s", "op", "size", "algorithm", "ranks", "iters",
                "p50 us", "p99 us", "algbw GB/s", "busbw GB/s", "correct");
}

std::string table_row(Measurement const& m) {
  auto const f = figures(m);
  return format("%-14s %10s  %-18s %5u %6zu %11.2f %11.2f %11.3f %11.3f %8s", std::string(name(m.task.op)).c_str(),
                readable_size(m.task.bytes()).c_str(), m.algorithm.c_str(), m.ranks, m.sample.seconds.size(), f.p50_us,
                f.p99_us, f.algbw, f.busbw, m.sample.correct ? "yes" : "NO");
}

}  // namespace chorus::bench
