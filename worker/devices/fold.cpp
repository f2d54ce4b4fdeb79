#include "worker/devices/fold.hpp"

#include <algorithm>
#include <array>

namespace chorus::devices {
namespace {

// Sums of a block stay in the first-level cache between the passes over it.
constexpr std::size_t block_elements = 1024;

}  // namespace

Folder::Folder(ReduceOp op, Dtype dtype)
    : op_(op),
      dtype_(dtype),
      fold_(find_fold(op, dtype)),
      fold_f32_(find_fold(ReduceOp::sum, Dtype::f32)),
      divide_(op == ReduceOp::avg ? find_divide(dtype) : nullptr),
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
  if (divide_ != nullptr && how.divisor != 1) return run_blocks(folding, how.divisor);
  fold_(folding);
}

void Folder::run_blocks(Folding const& folding, std::uint32_t divisor) const {
  auto const size = element_bytes(dtype_);
  alignas(64) std::array<std::byte, block_elements * 8> block;
  auto* const block_at = block.data();
  std::byte const* const block_source = block_at;
  std::array<std::byte const*, 2> pair{};
  for (std::uint64_t at = 0; at < folding.elements; at += block_elements) {
    auto const elements = std::min<std::uint64_t>(block_elements, folding.elements - at);
    auto const source = [&](std::size_t s) { return folding.sources[s] + at * size; };
    pair[0] = source(0);
    std::size_t sources = 1;
    for (std::size_t s = 1; s <= folding.source_count; ++s) {
      if (s < folding.source_count) pair[sources++] = source(s);
      if (s < folding.source_count || s == 1) fold_({pair.data(), sources, &block_at, 1, elements, false});
      pair[0] = block_at;
      sources = 1;
    }
    divide_(block_at, elements, divisor);
    for (std::size_t d = 0; d < folding.destination_count; ++d) {
      auto* const to = folding.destinations[d] + at * size;
      fold_({&block_source, 1, &to, 1, elements, folding.streams});
    }
  }
}

void Folder::run_halves(Folding const& folding, How how) const {
  auto const divisor = divide_ != nullptr ? static_cast<float>(how.divisor) : 1.0F;
  bool const only_moves = folding.source_count == 1 && divisor == 1 && how.wide_source == how.wide_results;
  if (only_moves) return how.wide_source ? fold_f32_(folding) : fold_(folding);
  auto const width = [](bool is_wide) { return is_wide ? Width::wide : Width::narrow; };
  find_fold_halves(op_, dtype_, width(how.wide_source), width(how.wide_results))(folding, divisor);
}

}  // namespace chorus::devices
