#include "worker/engine/shm/calls/step_arithmetic.hpp"

#include <algorithm>
#include <chrono>

#include "worker/engine/shm/calls/streaming.hpp"

namespace chorus::engine {
namespace {

// Unit of writes past the caches.
constexpr std::uint64_t cache_line_bytes = 64;

}  // namespace

StepArithmetic::StepArithmetic(plan::Program const& program, ReduceOp reduce, Dtype dtype)
    : ranks_(program.spec.ranks),
      element_bytes_(chorus::element_bytes(dtype)),
      reducer_(reducer_of(program, dtype, reduce)),
      copier_(devices::Reducer::copier(dtype)),
      average_(average_of(program, dtype, reduce)) {}

void StepArithmetic::combine(Step const& step, std::uint64_t bytes, std::span<std::byte const*> sources,
                             std::span<std::byte*> destinations) {
  using Clock = std::chrono::steady_clock;
  auto const operands = step.operands.size();
  bool const wide_source = !step.operands[0].message && step.operands[0].local.wide;
  bool const wide_results = step.destinations[0].wide;
  bool const computes = operands > 1 || step.is_final || wide_results || wide_source;
  auto how = computing(step.operands, step.is_final);
  how.wide_source = wide_source;
  how.wide_results = wide_results;
  auto const fold = [&](std::uint64_t some, bool streams) {
    (computes ? reducer_ : copier_)
        .run({sources.data(), operands, destinations.data(), destinations.size(), some / element_bytes_, streams}, how);
  };
  auto const fold_both_ways = [&] {
    auto const unit = std::max<std::uint64_t>(cache_line_bytes, element_bytes_);
    auto const tried = bytes / ResultStores::trial_part / unit * unit;
    auto const begin = Clock::now();
    fold(tried, !stores_.stream());
    auto const middle = Clock::now();
    for (auto& source : sources.first(operands)) source += tried;
    for (auto& destination : destinations) destination += tried;
    fold(bytes - tried, stores_.stream());
    auto const per_byte = [](Clock::duration took, std::uint64_t of) {
      return std::chrono::duration<double>(took).count() / static_cast<double>(of);
    };
    stores_.compare(per_byte(Clock::now() - middle, bytes - tried), per_byte(middle - begin, tried));
  };
  clock_.run(bytes, computes ? operands : 1, [&] {
    if (streams_results(step.bytes, destinations.size(), ranks_)) return fold(bytes, true);
    if (!depends_on_cores(bytes, destinations.size()) || wide_source || wide_results) return fold(bytes, false);
    if (stores_.tries()) return fold_both_ways();
    fold(bytes, stores_.stream());
  });
}

}  // namespace chorus::engine
