// The values of a shard and its optimizer's state in the memory of a GPU, and the steps that are taken there: to the
// bits of those that the optimizer takes on the host, but for the payloads of NaNs that arithmetic makes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"

namespace chorus::parameters {

// One thread at a time, which waits for the device in every call. The unit outlives it. Errors are GpuErrc's. After one
// of a step, nobody knows what the arrays have.
class GpuElements {
 public:
  // Of an optimizer whose state is kept elsewhere. The values are unspecified, the state is as at the beginning.
  [[nodiscard]] static Result<std::unique_ptr<GpuElements>> make(devices::GpuUnit& unit, Optimizer const& optimizer);

  // "values", then the optimizer's arrays that are here.
  struct Array {
    std::string_view name;  // static
    Dtype dtype = Dtype::f32;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::vector<Array> arrays() const;
  // All of an array that is here.
  [[nodiscard]] Status read(std::string_view array, std::span<std::byte> into) const;
  [[nodiscard]] Status write(std::string_view array, std::span<std::byte const> from);
  // Values from outside: the master copy, if there is one, begins there. Moments are kept.
  [[nodiscard]] Status adopt(std::span<std::byte const> values);

  // Pinned memory for what goes to the device, to be had before it is known that a step will be taken.
  using Slots = std::array<std::optional<devices::PinnedSlot>, 2>;
  [[nodiscard]] Result<std::shared_ptr<Slots>> reserve() const;

  // A step of all elements, by gradients in host memory that are summed in their order: ((g0 + g1) + g2) ..., divided
  // by their number if `averages`.
  [[nodiscard]] Status step(Optimizer const& optimizer, Step const& step, std::span<Gradient const> gradients,
                            bool averages, Slots& slots);
  // Of these rows, as Optimizer::step_rows, which counts them. The norm is given if it is wanted.
  [[nodiscard]] Status step_rows(Optimizer& optimizer, std::span<std::uint64_t const> rows, std::uint64_t row_elements,
                                 Gradient gradient, std::optional<double> gradient_norm, Slots& slots);

  [[nodiscard]] devices::GpuUnit& unit() const { return unit_; }

 private:
  struct Held {
    std::string_view name;
    Dtype dtype;
    double initial;
    std::shared_ptr<devices::GpuMemory> memory;
  };
  class Conveyor;

  explicit GpuElements(devices::GpuUnit& unit) : unit_(unit) {}
  [[nodiscard]] Status take(Optimizer const& optimizer, std::uint64_t elements, Dtype dtype);
  [[nodiscard]] Status seen(Status status) const;  // a lost device is known as one from then on
  [[nodiscard]] Status fill(Held const& array);
  template <class Work>
  [[nodiscard]] Status in_session(Work const& work);
  [[nodiscard]] Status queue(Optimizer const& optimizer, Step const& step, std::uint64_t first_element,
                             std::uint64_t count, std::byte const* gradient, Dtype gradient_dtype);
  [[nodiscard]] Held const* find(std::string_view array) const;

  devices::GpuUnit& unit_;
  std::vector<Held> arrays_;                                     // values first, then the method's own, then master
  std::array<std::shared_ptr<devices::GpuMemory>, 2> arriving_;  // pieces of gradients
  std::shared_ptr<devices::GpuMemory> sums_;                     // of a piece; of halves in f32
  devices::GpuUse counted_;
  std::unique_ptr<devices::GpuSession> session_;  // last: its end waits for what is queued
};

}  // namespace chorus::parameters
