#include "worker/devices/fold.hpp"

namespace chorus::devices {

Folder::Folder(ReduceOp op, Dtype dtype)
    : op_(op),
      dtype_(dtype),
      fold_(find_fold(op, dtype)),
      fold_f32_(find_fold(ReduceOp::sum, Dtype::f32)),
      average_(op == ReduceOp::avg ? find_fold_average(dtype) : nullptr),
      is_half_(find_widen(dtype) != nullptr) {
  if (is_half_) fold_ = find_fold(ReduceOp::bor, Dtype::u16);
}

Folder Folder::copier(Dtype dtype) {
  auto const bytes = element_bytes(dtype);
  auto const same_size = bytes == 8 ? Dtype::u64 : bytes == 4 ? Dtype::u32 : bytes == 2 ? Dtype::u16 : Dtype::u8;
  return Folder(ReduceOp::bor, same_size);
}

void Folder::run(Folding const& folding, How how) const {
  if (folding.elements == 0) return;
  if (is_half_) return run_halves(folding, how);
  if (average_ != nullptr) return average_(folding, how.divisor);
  fold_(folding);
}

void Folder::run_halves(Folding const& folding, How how) const {
  auto const divisor = op_ == ReduceOp::avg ? static_cast<float>(how.divisor) : 1.0F;
  bool const only_moves = folding.source_count == 1 && divisor == 1 && how.wide_source == how.wide_results;
  if (only_moves) return how.wide_source ? fold_f32_(folding) : fold_(folding);
  auto const width = [](bool is_wide) { return is_wide ? Width::wide : Width::narrow; };
  find_fold_halves(op_, dtype_, width(how.wide_source), width(how.wide_results))(folding, divisor);
}

}  // namespace chorus::devices
