// Reductions of typed memory on the CPU: any number of sources into any number of destinations, each element read and
// written once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::devices {

// Sources and destinations of one pass. Sources are combined in their order: ((s0 op s1) op s2) ... Memory may begin at
// any byte.
struct ReduceArguments {
  std::byte const* const* sources = nullptr;
  std::size_t source_count = 0;  // at least 1; 1 copies
  std::byte* const* destinations = nullptr;
  // At least 1. One may also be a source if it is as wide, otherwise nothing overlaps.
  std::size_t destination_count = 0;
  std::uint64_t elements = 0;
  // Writes the destinations past the caches, which is faster if they are much larger. Has an effect only if they are
  // aligned to their elements, and all alike to 64 bytes.
  bool streams = false;
};

// Factors of the sources of an average, one for each, applied when they are read: powers of two, so that no sum
// overflows. Null: all 1, as for integers and blocks.
using Weights = float const*;

// Returns false for pairs without kernels: bit operations on floats, and all but sum and avg of blocks.
[[nodiscard]] bool can_reduce(ReduceOp op, Dtype dtype);

// True for f16, bf16 and blocks: computed in f32 and rounded once, at the end.
[[nodiscard]] constexpr bool is_summed_in_f32(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 || is_block(dtype);
}

// Returns the power of two by which numbers of an average are divided so that their sum does not overflow. 1 for
// integers, and for f16, whose sums are f32.
[[nodiscard]] float scale_of_average(Dtype dtype, std::uint64_t summands);

// Returns Reducer::How::contributions of an average of so many numbers that are added one by one: 0 if the quotient of
// equal numbers is exact. Of f32 and f64 it is with two numbers and with four (plan::summation_of).
[[nodiscard]] std::uint32_t compared_contributions(Dtype dtype, std::uint64_t summands);

// A complete reduction of one operation and dtype. Integers wrap (two's complement); min and max of a NaN give NaN; avg
// divides, integers truncating towards zero. A value.
class Reducer {
 public:
  // Requires can_reduce(op, dtype).
  Reducer(ReduceOp op, Dtype dtype);
  // Makes a reducer that copies one source.
  [[nodiscard]] static Reducer copier(Dtype dtype);

  struct How {
    std::uint32_t divisor = 1;  // of the result, if the operation is avg
    float scale = 1;            // floats are divided by divisor / scale, because sources have been divided by scale,
    Weights weights = nullptr;  // or are by these weights when they are read
    // f32 and f64 with weights: how many contributions the sum has, all added one by one. If as many numbers that equal
    // the source `single`, a contribution, have this sum, then that number is the average: the quotient would miss it
    // where a multiple of it is rounded. 0: the quotient.
    std::uint32_t contributions = 0;
    std::uint32_t single = 0;
    bool wide_source = false;   // f16, bf16, blocks: the first source is f32, wide_bytes() per element
    bool wide_results = false;  // f16, bf16, blocks: the destinations are f32
  };
  void run(ReduceArguments const& arguments, How const& how) const { kernel_(arguments, how); }

  using Kernel = void (*)(ReduceArguments const& arguments, How const& how);

 private:
  Kernel kernel_;
};

// Convert f16, bf16 or blocks to f32, wide_bytes() per element, and back, rounding once. No overlap.
void widen(Dtype dtype, std::byte* floats, std::byte const* elements, std::uint64_t count, bool streams = false);
void narrow(Dtype dtype, std::byte* elements, std::byte const* floats, std::uint64_t count);

}  // namespace chorus::devices
