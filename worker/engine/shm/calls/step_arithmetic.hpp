// Arithmetic of the steps of a call: sums, averages and copies in memory, through the caches or past them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/reduce_op.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/program/reduction.hpp"
#include "worker/engine/shm/calls/result_stores.hpp"
#include "worker/engine/shm/calls/shared_exchange.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/trace/reduce_clock.hpp"

namespace chorus::engine {

// One per kind of call and rank; not thread-safe.
class StepArithmetic {
 public:
  StepArithmetic(plan::Program const& program, ReduceOp reduce, Dtype dtype);

  // Sets the largest number of operands of a step.
  void make_room(std::size_t operands) { weights_.resize(operands); }
  void start_over() { clock_.reset(); }
  [[nodiscard]] Reduced const& reduced() const { return clock_.reduced(); }  // since start_over()

  // Combines `bytes` of each of the step's operands at the sources into each of the destinations. Advances the pointers
  // if it tries both ways to write.
  void combine(Step const& step, std::uint64_t bytes, std::span<std::byte const*> sources,
               std::span<std::byte*> destinations);

  // Does all the arithmetic of an exchange.
  void combine(Exchange const& plan, std::byte const* const* sources, std::byte* const* destinations) {
    (plan.computes() ? reducer_ : copier_)
        .run({sources, plan.operands.size(), destinations, plan.destinations.size(), plan.bytes / element_bytes_},
             computing(plan.operands, plan.is_final));
  }

 private:
  // Valid until the next call.
  template <class Operands>
  [[nodiscard]] devices::Reducer::How computing(Operands const& operands, bool is_final) {
    devices::Reducer::How how;
    if (is_final) average_.divide(how);
    if (average_.scale == 1 || operands.size() < 2) return how;
    if (is_final) average_.compare(how, last_contribution(operands));
    for (std::size_t k = 0; k < operands.size(); ++k) weights_[k] = operands[k].is_partial ? 1 : 1 / average_.scale;
    how.weights = weights_.data();
    return how;
  }

  template <class Operands>
  [[nodiscard]] static std::size_t last_contribution(Operands const& operands) {
    auto last = operands.size() - 1;
    while (last > 0 && operands[last].is_partial) --last;
    return last;
  }

  std::uint32_t const ranks_;
  std::size_t const element_bytes_;
  devices::Reducer const reducer_, copier_;
  Average const average_;
  std::vector<float> weights_;  // for an average, by source
  ResultStores stores_;
  ReduceClock clock_;
};

}  // namespace chorus::engine
