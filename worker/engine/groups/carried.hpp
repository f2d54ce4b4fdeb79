// A call whose data travels in another form than that of its tensors: the run has another dtype, in memory of its own.
#pragma once

#include <optional>
#include <variant>

#include "worker/engine/groups/carried_average.hpp"
#include "worker/engine/groups/compressed.hpp"

namespace chorus::engine {

// A value. Any thread.
class Carried {
 public:
  // Empty if the data travels as it is, or as codes between groups. A compressed call: check_compression() is ok.
  // `sizes`: of the tensors; `contributions`: see CarriedAverage, 0 for compressed averages.
  [[nodiscard]] static std::optional<Carried> of(std::optional<Compression> const& compression, ReduceOp reduce,
                                                 Dtype dtype, plan::Algorithm const& algorithm, plan::Spec const& spec,
                                                 plan::Sizes const& sizes, std::uint64_t contributions = 0);

  [[nodiscard]] bool is_compressed() const { return std::holds_alternative<Compressed>(form_); }
  [[nodiscard]] CarriedAverage const* average() const { return std::get_if<CarriedAverage>(&form_); }

  // Of the run.
  [[nodiscard]] Dtype dtype() const;
  [[nodiscard]] ReduceOp reduce() const { return reduce_; }
  [[nodiscard]] plan::Sizes const& sizes() const { return sizes_; }
  [[nodiscard]] std::uint64_t bytes(std::uint64_t buffer_bytes) const;
  // The tensor's own memory serves, in place.
  [[nodiscard]] bool is_as_wide() const { return !is_compressed() && average()->is_as_wide(); }
  // GPU in whose memory the run works, given that of the tensors; null: host memory.
  [[nodiscard]] devices::GpuUnit* place(devices::GpuUnit* gpu) const {
    return is_compressed() ? nullptr : average()->place(gpu);
  }

  // Convert buffers of tensors to those of the run before it, and back after it, which destroys what the run left.
  // `gpu`: where the tensors lie. `feedback`: of compressed calls. Errors: GpuErrc.
  [[nodiscard]] Status before(std::span<std::byte> to, std::span<std::byte const> from, devices::GpuUnit* gpu,
                              Feedback feedback = {}) const;
  [[nodiscard]] Status after(std::span<std::byte> to, std::span<std::byte> from, devices::GpuUnit* gpu) const;

 private:
  using Form = std::variant<CarriedAverage, Compressed>;
  Carried(Form form, ReduceOp reduce, plan::Sizes sizes)
      : form_(std::move(form)), reduce_(reduce), sizes_(std::move(sizes)) {}

  Form form_;
  ReduceOp reduce_;
  plan::Sizes sizes_;
};

}  // namespace chorus::engine
