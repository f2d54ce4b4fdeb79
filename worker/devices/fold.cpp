#include "worker/devices/fold.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace chorus::devices {
namespace {

// Sums of a block stay in the first-level cache between the passes over it.
constexpr std::size_t block_elements = 1024;

// The parts of f from element `at` on.
class Part {
 public:
  explicit Part(Folding const& whole) : whole_(whole) {}
  [[nodiscard]] std::byte const* source(std::size_t s, std::uint64_t at, std::size_t element_bytes) const {
    return whole_.sources[s] + at * element_bytes;
  }
  [[nodiscard]] std::byte* destination(std::size_t d, std::uint64_t at, std::size_t element_bytes) const {
    return whole_.destinations[d] + at * element_bytes;
  }

 private:
  Folding const& whole_;
};

}  // namespace

Folder::Folder(ReduceOp op, Dtype dtype)
    : op_(op),
      dtype_(dtype),
      fold_(find_fold(op, dtype)),
      fold_f32_(find_fold(ReduceOp::sum, Dtype::f32)),
      divide_(op == ReduceOp::avg ? find_divide(dtype) : nullptr),
      widen_(find_widen(dtype)) {
  if (widen_ != nullptr) fold_ = find_fold(ReduceOp::bor, Dtype::u16);
}

Folder Folder::copier(Dtype dtype) {
  auto const bytes = element_bytes(dtype);
  auto const same_size = bytes == 8 ? Dtype::u64 : bytes == 4 ? Dtype::u32 : bytes == 2 ? Dtype::u16 : Dtype::u8;
  return Folder(ReduceOp::bor, same_size);
}

void Folder::run(Folding const& folding, How how) const {
  if (folding.elements == 0) return;
  if (widen_ != nullptr) return run_halves(folding, how);
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
    Part const part(folding);
    pair[0] = part.source(0, at, size);
    std::size_t sources = 1;
    for (std::size_t s = 1; s <= folding.source_count; ++s) {
      if (s < folding.source_count) pair[sources++] = part.source(s, at, size);
      if (s < folding.source_count || s == 1) fold_({pair.data(), sources, &block_at, 1, elements, false});
      pair[0] = block_at;
      sources = 1;
    }
    divide_(block_at, elements, divisor);
    for (std::size_t d = 0; d < folding.destination_count; ++d) {
      auto* const to = part.destination(d, at, size);
      fold_({&block_source, 1, &to, 1, elements, folding.streams});
    }
  }
}

void Folder::run_halves(Folding const& folding, How how) const {
  constexpr std::size_t narrow = 2, wide = sizeof(float);
  auto const out_bytes = how.wide_results ? wide : narrow;
  auto const out_width = how.wide_results ? Width::wide : Width::narrow;
  // What is copied, or widened: nothing is computed.
  bool const computes = folding.source_count > 1;
  auto const divisor = divide_ != nullptr ? static_cast<float>(how.divisor) : 1.0F;
  alignas(64) std::array<std::byte, block_elements * wide> sums, results;
  for (std::uint64_t at = 0; at < folding.elements; at += block_elements) {
    auto const elements = std::min<std::uint64_t>(block_elements, folding.elements - at);
    Part const part(folding);
    auto const* first = part.source(0, at, how.wide_source ? wide : narrow);
    auto const* result = results.data();
    if (!computes) {
      if (how.wide_results && !how.wide_source)
        widen_(results.data(), first, elements);
      else
        result = first;
      if (divisor != 1) {
        if (result == first) std::memcpy(results.data(), first, elements * narrow);
        result = results.data();
        divide_(results.data(), elements, how.divisor);
      }
    } else {
      auto width = how.wide_source ? Width::wide : Width::narrow;
      for (std::size_t s = 1; s < folding.source_count; ++s) {
        bool const is_last = s + 1 == folding.source_count;
        auto const to_width = is_last ? out_width : Width::wide;
        auto* const to = is_last ? results.data() : sums.data();
        find_half_combine(op_, dtype_, width, to_width)(to, first, part.source(s, at, narrow), elements,
                                                        is_last ? divisor : 1.0F);
        first = sums.data();
        width = Width::wide;
      }
    }
    auto const copy = how.wide_results ? fold_f32_ : fold_;
    for (std::size_t d = 0; d < folding.destination_count; ++d) {
      auto* const to = part.destination(d, at, out_bytes);
      if (to != result) copy({&result, 1, &to, 1, elements, folding.streams});
    }
  }
}

}  // namespace chorus::devices
