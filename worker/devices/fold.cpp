#include "worker/devices/fold.hpp"

#include <bit>

namespace chorus::devices {

float scale_of_average(Dtype dtype, std::uint64_t summands) {
  bool const is_scaled = dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::bf16;
  return is_scaled ? static_cast<float>(std::bit_ceil(summands)) : 1;
}

Reducer::Reducer(ReduceOp op, Dtype dtype)
    : op_(op),
      dtype_(dtype),
      fold_(find_fold(op, dtype)),
      fold_f32_(find_fold(ReduceOp::sum, Dtype::f32)),
      average_(op == ReduceOp::avg ? find_fold_average(dtype) : nullptr),
      is_half_(find_widen(dtype) != nullptr) {
  if (is_half_ && !is_block(dtype)) fold_ = find_fold(ReduceOp::bor, Dtype::u16);
}

Reducer Reducer::copier(Dtype dtype) {
  if (is_block(dtype)) return Reducer(ReduceOp::sum, dtype);
  auto const bytes = element_bytes(dtype);
  auto const same_size = bytes == 8 ? Dtype::u64 : bytes == 4 ? Dtype::u32 : bytes == 2 ? Dtype::u16 : Dtype::u8;
  return Reducer(ReduceOp::bor, same_size);
}

void Reducer::run(ReduceArguments const& arguments, How how) const {
  if (arguments.elements == 0) return;
  if (is_half_) return run_halves(arguments, how);
  if (average_ != nullptr) return average_(arguments, how.divisor, how.scale, how.weights);
  fold_(arguments);
}

void Reducer::run_halves(ReduceArguments const& arguments, How how) const {
  auto const divisor = op_ == ReduceOp::avg ? static_cast<float>(how.divisor) / how.scale : 1.0F;
  bool const only_moves = arguments.source_count == 1 && divisor == 1 && how.wide_source == how.wide_results;
  if (only_moves && how.wide_source) {
    auto floats = arguments;
    floats.elements *= wide_bytes(dtype_) / sizeof(float);
    return fold_f32_(floats);
  }
  if (only_moves) return fold_(arguments);
  auto const width = [](bool is_wide) { return is_wide ? Width::wide : Width::narrow; };
  find_fold_halves(op_, dtype_, width(how.wide_source), width(how.wide_results))(arguments, divisor, how.weights);
}

}  // namespace chorus::devices
