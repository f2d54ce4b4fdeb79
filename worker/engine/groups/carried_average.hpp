// An average whose sum travels in a wider dtype, so that every algorithm gives the same result: otherwise partial sums
// would overflow or be rounded in those algorithms that pass them on.
//
// The run is a sum in the wider dtype, in memory of its own: the caller widens the input before the run, and narrows
// and divides the output after it. Members need no agreement on that, since it follows from the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/devices/carrier.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

// A value. Any thread.
class CarriedAverage {
 public:
  // Empty if the call is no average, or a run can average by itself: one tensor per rank, in f32 or f64 where equal
  // contributions are not lost in their sum (plan::Summation), or in f16 or bf16 where every element is summed at one
  // place, which keeps the sum in f32. `contributions`: number of tensors of all ranks together if it is not one per
  // rank; each rank adds its own before the run.
  [[nodiscard]] static std::optional<CarriedAverage> of(ReduceOp reduce, Dtype dtype, plan::Algorithm const& algorithm,
                                                        plan::Spec const& spec, std::uint64_t contributions = 0);

  // Dtype and sizes of the run, which is a sum.
  [[nodiscard]] Dtype dtype() const { return carrier_.dtype(); }
  [[nodiscard]] plan::Sizes sizes(plan::Sizes const& narrow) const;
  [[nodiscard]] std::uint64_t bytes(std::uint64_t narrow_bytes) const {
    return carrier_.bytes(narrow_bytes / element_bytes(narrow_));
  }
  // f32 and f64 of several tensors per rank are scaled in place.
  [[nodiscard]] bool is_as_wide() const { return carrier_.is_as_wide(); }
  // GPU in whose memory the run works, given that of the narrow buffers; null: host memory.
  [[nodiscard]] devices::GpuUnit* place(devices::GpuUnit* gpu) const { return is_reduction() ? gpu : nullptr; }

  // For floats: weights with which an average in the narrow dtype folds one or several sources into the wide input.
  // `weights` holds weight() once per source.
  [[nodiscard]] float weight() const { return 1 / carrier_.scale(); }
  [[nodiscard]] devices::Reducer::How widening(devices::Weights weights) const {
    return {.weights = weights, .wide_results = is_half()};
  }

  // Convert between host memory, or between memory of `gpu` and of place(gpu); a GPU is waited for. narrow() divides by
  // the contributions, and destroys the sums. Errors: GpuErrc.
  [[nodiscard]] Status widen(std::span<std::byte> to, std::span<std::byte const> from, devices::GpuUnit* gpu) const;
  [[nodiscard]] Status narrow(std::span<std::byte> to, std::span<std::byte> sums, devices::GpuUnit* gpu) const;

 private:
  CarriedAverage(devices::Carrier carrier, Dtype narrow, plan::Spec const& spec, std::uint64_t contributions)
      : carrier_(carrier),
        narrow_(narrow),
        op_(spec.op),
        ranks_(spec.ranks),
        divisor_(static_cast<std::uint32_t>(contributions != 0 ? contributions : spec.ranks)) {}
  // True if widening and narrowing are reductions of one source, which GPUs do, too.
  [[nodiscard]] bool is_reduction() const { return is_half() || is_as_wide(); }
  [[nodiscard]] bool is_half() const { return narrow_ == Dtype::f16 || narrow_ == Dtype::bf16; }

  devices::Carrier carrier_;
  Dtype narrow_;
  Op op_;
  std::uint32_t ranks_;
  std::uint32_t divisor_;
};

}  // namespace chorus::engine
