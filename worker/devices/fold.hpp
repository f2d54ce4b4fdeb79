// Reductions of any number of sources into any number of destinations, each element read and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {

// Sources and destinations of one pass. Sources are combined in their order: ((s0 op s1) op s2) ...
struct ReduceArguments {
  std::byte const* const* sources = nullptr;
  std::size_t source_count = 0;  // at least 1; 1 copies
  std::byte* const* destinations = nullptr;
  std::size_t destination_count = 0;  // at least 1; one may also be a source, otherwise nothing overlaps
  std::uint64_t elements = 0;
  bool streams = false;  // write the destinations past the caches, which is faster if they are much larger
};

// Memory may begin at any byte. Destinations are written past the caches only if they are aligned to their elements,
// and all alike to 64 bytes. One pass gives the same bits as a sequence of Combine.
using Fold = void (*)(ReduceArguments const& arguments);

// Null for pairs for which find_combine() is null, and for f16 and bf16: see Reducer. For blocks it copies one source.
[[nodiscard]] Fold find_fold(ReduceOp op, Dtype dtype);

// Factors of the sources of an average, one for each, applied when they are read: powers of two, so that no sum
// overflows. Null: all 1, as for integers.
using Weights = float const*;

// Divides a sum by divisor / scale, rounding as Divide does. Null for f16, bf16 and blocks.
using FoldAverage = void (*)(ReduceArguments const& arguments, std::uint32_t divisor, float scale, Weights weights);
[[nodiscard]] FoldAverage find_fold_average(Dtype dtype);

// The same for f16, bf16 and blocks, computed in f32, divided and rounded once. The first source and the destinations
// are f32 (wide) or of the dtype; the other sources are of the dtype. Null for other dtypes and for bit operations.
// Weights are for sums only, and not for blocks.
using FoldHalves = void (*)(ReduceArguments const& arguments, float divisor, Weights weights);
[[nodiscard]] FoldHalves find_fold_halves(ReduceOp op, Dtype dtype, Width source, Width results);

// Returns the power of two by which numbers of an average are divided so that their sum does not overflow. 1 for
// integers, and for f16, whose sums are f32.
[[nodiscard]] float scale_of_average(Dtype dtype, std::uint64_t summands);

// A complete reduction of one operation and dtype: avg divides; f16, bf16 and blocks are summed in f32 and rounded
// once. A value.
class Reducer {
 public:
  // Requires that find_combine(op, dtype) is not null.
  Reducer(ReduceOp op, Dtype dtype);
  // Makes a reducer that copies one source.
  [[nodiscard]] static Reducer copier(Dtype dtype);

  struct How {
    std::uint32_t divisor = 1;  // of the result, if the operation is avg
    float scale = 1;            // floats are divided by divisor / scale, because sources have been divided by scale,
    Weights weights = nullptr;  // or are by these weights when they are read
    bool wide_source = false;   // f16, bf16, blocks: the first source is f32
    bool wide_results = false;  // f16, bf16, blocks: the destinations are f32
  };
  void run(ReduceArguments const& arguments, How how) const;

 private:
  void run_halves(ReduceArguments const& arguments, How how) const;

  ReduceOp op_;
  Dtype dtype_;
  Fold fold_;            // of the dtype; for f16 and bf16 it only copies
  Fold fold_f32_;        // copies partial sums
  FoldAverage average_;  // null unless the operation is avg; null for f16, bf16 and blocks
  bool is_half_;         // f16, bf16 or blocks
};

}  // namespace chorus::devices
