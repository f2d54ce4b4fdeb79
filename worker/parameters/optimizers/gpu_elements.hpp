// A shard's values and its optimizer's state in GPU memory, and the steps over them, which give the same bits as the
// optimizer's steps on the host, except for payloads of NaNs that arithmetic makes.
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

// Used by one thread at a time, which waits for the device in every call. The unit outlives it. All errors are GpuErrc.
// After a failed step the contents of the arrays are unknown.
class GpuElements {
 public:
  // For an optimizer with State::elsewhere. The values are unspecified; the state is initial.
  [[nodiscard]] static Result<std::unique_ptr<GpuElements>> make(devices::GpuUnit& unit, Optimizer const& optimizer);

  // "values", then the optimizer's arrays on the GPU.
  struct Array {
    std::string_view name;  // static
    Dtype dtype = Dtype::f32;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::vector<Array> arrays() const;
  // Read and write a whole array.
  [[nodiscard]] Status read(std::string_view array, std::span<std::byte> into) const;
  [[nodiscard]] Status write(std::string_view array, std::span<std::byte const> from);
  // Sets values from outside; the master copy, if there is one, begins with them. Moments are kept.
  [[nodiscard]] Status adopt(std::span<std::byte const> values);

  // Takes pinned memory for copies to the device. Called before a step is decided, because it may fail.
  using Slots = std::array<std::optional<devices::PinnedSlot>, 2>;
  [[nodiscard]] Result<std::shared_ptr<Slots>> reserve() const;

  // Steps all elements by gradients in host memory, summed in their order: ((g0 + g1) + g2) ..., divided by their
  // number if `averages`.
  [[nodiscard]] Status step(Optimizer const& optimizer, Step const& step, std::span<Gradient const> gradients,
                            bool averages, std::shared_ptr<Slots> const& slots);
  // Steps these rows like Optimizer::step_rows, and counts their steps in the optimizer. `gradient_norm` is given if
  // the optimizer wants it.
  [[nodiscard]] Status step_rows(Optimizer& optimizer, std::span<std::uint64_t const> rows, std::uint64_t row_elements,
                                 Gradient gradient, std::optional<double> gradient_norm,
                                 std::shared_ptr<Slots> const& slots);

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
  [[nodiscard]] Status seen(Status status) const;  // tells the unit of a lost device
  [[nodiscard]] Status fill(Held const& array);
  template <class Work>
  [[nodiscard]] Status in_session(std::shared_ptr<Slots> slots, Work const& work);
  [[nodiscard]] Status queue(Optimizer const& optimizer, Step const& step, std::uint64_t first_element,
                             std::uint64_t count, std::byte const* gradient, Dtype gradient_dtype);
  [[nodiscard]] Held const* find(std::string_view array) const;

  devices::GpuUnit& unit_;
  std::vector<Held> arrays_;                                     // values first, then the method's own, then master
  std::array<std::shared_ptr<devices::GpuMemory>, 2> arriving_;  // pieces of gradients
  std::shared_ptr<devices::GpuMemory> sums_;                     // of a piece; for f16 and bf16 in f32
  devices::GpuUse counted_;
  std::unique_ptr<devices::GpuSession> session_;  // with nothing queued between calls
};

}  // namespace chorus::parameters
