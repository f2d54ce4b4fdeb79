#include "worker/bench/hand_written.hpp"

namespace chorus::bench {

std::span<HandWritten const> hand_written_loops() {
#if defined(__x86_64__)
  auto const all = [](HandWrittenTable table) { return std::span(table.loops, table.count); };
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return all(hand_written_avx512());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return all(hand_written_avx2());
#endif
  return {};
}

}  // namespace chorus::bench
