#include "worker/devices/reduce.hpp"

#include <bit>

#include "worker/devices/kernels.hpp"

namespace chorus::devices {
namespace {

Reducer::Kernel kernel(ReduceOp op, Dtype dtype) {
  return best_kernels().reduce[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
}

}  // namespace

bool can_reduce(ReduceOp op, Dtype dtype) { return kernel(op, dtype) != nullptr; }

float scale_of_average(Dtype dtype, std::uint64_t summands) {
  bool const is_scaled = dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::bf16;
  return is_scaled ? static_cast<float>(std::bit_ceil(summands)) : 1;
}

std::uint32_t compared_contributions(Dtype dtype, std::uint64_t summands) {
  bool const is_rounded = (dtype == Dtype::f64 || dtype == Dtype::f32) && summands != 2 && summands != 4;
  return is_rounded && summands > 1 ? static_cast<std::uint32_t>(summands) : 0;
}

Reducer::Reducer(ReduceOp op, Dtype dtype) : kernel_(kernel(op, dtype)) {}

Reducer Reducer::copier(Dtype dtype) {
  if (is_block(dtype)) return Reducer(ReduceOp::sum, dtype);
  auto const bytes = element_bytes(dtype);
  auto const same_size = bytes == 8 ? Dtype::u64 : bytes == 4 ? Dtype::u32 : bytes == 2 ? Dtype::u16 : Dtype::u8;
  return Reducer(ReduceOp::bor, same_size);
}

void widen(Dtype dtype, std::byte* floats, std::byte const* elements, std::uint64_t count, bool streams) {
  Reducer(ReduceOp::sum, dtype).run({&elements, 1, &floats, 1, count, streams}, {.wide_results = true});
}

void narrow(Dtype dtype, std::byte* elements, std::byte const* floats, std::uint64_t count) {
  Reducer(ReduceOp::sum, dtype).run({&floats, 1, &elements, 1, count}, {.wide_source = true});
}

}  // namespace chorus::devices
