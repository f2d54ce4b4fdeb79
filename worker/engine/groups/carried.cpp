#include "worker/engine/groups/carried.hpp"

#include <utility>

namespace chorus::engine {

std::optional<Carried> Carried::of(std::optional<Compression> const& compression, ReduceOp reduce, Dtype dtype,
                                   plan::Algorithm const& algorithm, plan::Spec const& spec, plan::Sizes const& sizes,
                                   std::uint64_t contributions) {
  bool const has_codes = algorithm.coded_from != nullptr && algorithm.coded_from(spec) != plan::no_codes;
  if (compression && compression->between && has_codes) return std::nullopt;
  if (compression && !compression->between) {
    Compressed compressed(compression->format, dtype, spec, sizes);
    auto of_codes = compressed.sizes();
    return Carried(std::move(compressed), reduce, std::move(of_codes));
  }
  auto const average = CarriedAverage::of(reduce, dtype, algorithm, spec, contributions);
  if (!average) return std::nullopt;
  return Carried(*average, ReduceOp::sum, average->sizes(sizes));
}

Dtype Carried::dtype() const {
  return std::visit([](auto const& form) { return form.dtype(); }, form_);
}

std::uint64_t Carried::bytes(std::uint64_t buffer_bytes) const {
  return std::visit([=](auto const& form) { return form.bytes(buffer_bytes); }, form_);
}

Status Carried::before(std::span<std::byte> to, std::span<std::byte const> from, devices::GpuUnit* gpu,
                       Feedback feedback) const {
  if (auto const* const average = this->average()) return average->widen(to, from, gpu);
  return std::get<Compressed>(form_).encode(to, from, gpu, feedback);
}

Status Carried::after(std::span<std::byte> to, std::span<std::byte> from, devices::GpuUnit* gpu) const {
  if (auto const* const average = this->average()) return average->narrow(to, from, gpu);
  return std::get<Compressed>(form_).decode(to, from, gpu);
}

}  // namespace chorus::engine
