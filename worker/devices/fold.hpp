// Reductions of any number of sources into any number of destinations, each element read and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {

// What lies where, for one pass. Sources are taken in their order: ((s0 op s1) op s2) ...
struct Folding {
  std::byte const* const* sources = nullptr;
  std::size_t source_count = 0;  // at least 1; 1 copies
  std::byte* const* destinations = nullptr;
  std::size_t destination_count = 0;  // at least 1; one may also be a source, otherwise nothing overlaps
  std::uint64_t elements = 0;
  bool streams = false;  // the destinations are written past the caches: faster where they are much larger
};

// Memory may begin at any byte; only where destinations are aligned to their elements, and all alike to 64 bytes, are
// they written past the caches. The results of one pass are the same bits as those of Combine, one after the other.
using Fold = void (*)(Folding const& folding);

// Null where find_combine is, and for f16 and bf16: see Folder.
[[nodiscard]] Fold find_fold(ReduceOp op, Dtype dtype);

// A sum over a divisor, as of Divide. Null for f16 and bf16.
using FoldAverage = void (*)(Folding const& folding, std::uint32_t divisor);
[[nodiscard]] FoldAverage find_fold_average(Dtype dtype);

// The same for f16 and bf16, computed in f32, divided and rounded once. The first source and the destinations are each
// f32 (wide) or of the dtype, the other sources of the dtype. Null for other dtypes, and for bit operations.
using FoldHalves = void (*)(Folding const& folding, float divisor);
[[nodiscard]] FoldHalves find_fold_halves(ReduceOp op, Dtype dtype, Width source, Width results);

// A reduction with everything that belongs to it: avg divides, f16 and bf16 are summed in f32 and rounded once. A
// value.
class Folder {
 public:
  // find_combine(op, dtype) is not null.
  Folder(ReduceOp op, Dtype dtype);
  // For what only moves: one source, bytes.
  [[nodiscard]] static Folder copier(Dtype dtype);

  struct How {
    std::uint32_t divisor = 1;  // of the result; ignored unless the operation is avg
    bool wide_source = false;   // f16, bf16: the first source is f32
    bool wide_results = false;  // f16, bf16: the destinations are f32
  };
  void run(Folding const& folding, How how) const;

 private:
  void run_halves(Folding const& folding, How how) const;

  ReduceOp op_;
  Dtype dtype_;
  Fold fold_;            // of the dtype, or, of halves, of their bits: to copy
  Fold fold_f32_;        // to copy partial sums
  FoldAverage average_;  // null unless the operation is avg; null of halves
  bool is_half_;         // f16 or bf16
};

}  // namespace chorus::devices
