#include "worker/engine/groups/carried_average.hpp"

#include <algorithm>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::engine {
namespace {

// Returns true if a run finds the average of equal numbers by itself, in the dtype of the tensor.
bool can_average(Dtype dtype, plan::Algorithm const& algorithm, plan::Spec const& spec) {
  bool const is_half = dtype == Dtype::f16 || dtype == Dtype::bf16;
  if (is_half)  // summed at one place, which keeps the sum in f32
    return spec.ranks <= 2 || (algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec));
  bool const is_float = dtype == Dtype::f32 || dtype == Dtype::f64;
  return is_float && plan::summation_of(algorithm, spec) != plan::Summation::any;
}

}  // namespace

std::optional<CarriedAverage> CarriedAverage::of(ReduceOp reduce, Dtype dtype, plan::Algorithm const& algorithm,
                                                 plan::Spec const& spec, std::uint64_t contributions) {
  if (reduce != ReduceOp::avg || !reduces(spec.op)) return std::nullopt;
  if (contributions == 0 && spec.ranks == 1) return std::nullopt;
  if (contributions == 0 && can_average(dtype, algorithm, spec)) return std::nullopt;
  auto const summands = std::max<std::uint64_t>(contributions, spec.ranks);
  bool const is_scaled = contributions != 0 && (dtype == Dtype::f32 || dtype == Dtype::f64);
  auto const carrier = is_scaled ? devices::Carrier::scaled(dtype, summands) : devices::Carrier::of(dtype, summands);
  return CarriedAverage(carrier, dtype, spec, contributions);
}

plan::Sizes CarriedAverage::sizes(plan::Sizes const& narrow) const {
  auto const parts = carrier_.per_element();
  if (parts == 1) return narrow;
  auto sizes = narrow;
  if (has_blocks(op_) && sizes.counts.empty()) {  // blocks of whole elements, cut as in the narrow dtype
    plan::Layout const layout(sizes.elements, ranks_);
    for (std::uint32_t block = 0; block < ranks_; ++block) sizes.counts.push_back(layout.range(block).size());
    sizes.elements = 0;
  }
  sizes.elements *= parts;
  for (auto& count : sizes.counts) count *= parts;
  return sizes;
}

Status CarriedAverage::widen(std::span<std::byte> to, std::span<std::byte const> from, devices::GpuUnit* gpu) const {
  if (gpu == nullptr) {
    carrier_.widen(to, from);
    return ok();
  }
  if (is_reduction()) {
    auto const* const source = from.data();
    auto* const destination = to.data();
    auto const each = weight();
    return gpu->fold(ReduceOp::avg, narrow_, {&source, 1, &destination, 1, from.size() / element_bytes(narrow_), false},
                     widening(&each));
  }
  std::vector<std::byte> here(from.size());
  if (auto const downloaded = gpu->download(here, from.data()); !downloaded) return downloaded;
  carrier_.widen(to, here);
  return ok();
}

Status CarriedAverage::narrow(std::span<std::byte> to, std::span<std::byte> sums, devices::GpuUnit* gpu) const {
  if (gpu == nullptr) {
    carrier_.narrow(to, sums, divisor_);
    return ok();
  }
  if (is_reduction()) {
    std::byte const* const source = sums.data();
    auto* const destination = to.data();
    return gpu->fold(ReduceOp::avg, narrow_, {&source, 1, &destination, 1, to.size() / element_bytes(narrow_), false},
                     {.divisor = divisor_, .scale = carrier_.scale(), .wide_source = is_half()});
  }
  std::vector<std::byte> here(to.size());
  carrier_.narrow(here, sums, divisor_);
  return gpu->upload(to.data(), here);
}

}  // namespace chorus::engine
