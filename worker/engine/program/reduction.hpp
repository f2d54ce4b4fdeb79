// What the instructions of a program compute, for CPUs and GPUs alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine {

// How floats are averaged. Each input is divided by `scale`, a power of two, where it is first added. A complete sum is
// divided by the rest of the divisor; with a divisor of 1 the sum stays scaled.
struct Average {
  std::uint32_t divisor = 1;
  float scale = 1;
  // How many contributions are compared with the single one of a final instruction; 0: none. See Reducer::How.
  std::uint32_t compared = 0;

  void divide(devices::Reducer::How& how) const {
    how.divisor = divisor;
    how.scale = divisor == 1 ? 1 : scale;
  }
  // Of a sum of several operands that is divided; `single`: which of them is a contribution.
  void compare(devices::Reducer::How& how, std::size_t single) const {
    how.contributions = compared;
    how.single = static_cast<std::uint32_t>(single);
  }
};

// Returns a reducer of the program's operands; if the program does not reduce, one that copies.
[[nodiscard]] devices::Reducer reducer_of(plan::Program const& program, Dtype dtype, ReduceOp reduce);
// Returns how the program averages. Not an average: divisor 1 and scale 1.
[[nodiscard]] Average average_of(plan::Program const& program, Dtype dtype, ReduceOp reduce);

// Where the next bytes of an instruction lie.
struct Operands {
  std::byte const* operand = nullptr;  // of reduce and recv_reduce: what `other` is combined with
  std::byte const* other = nullptr;    // received data, or the source of a copy or reduce
  std::byte* dst = nullptr;
  std::byte* partial = nullptr;  // f32 partial sums, which the flags of an instruction put in place of operand and dst
};

// A reduction of one or two sources, or a copy.
struct Reduction {
  std::array<std::byte const*, 2> sources{};
  std::size_t source_count = 0;
  std::byte* result = nullptr;
  bool only_moves = false;  // the result is the source, unchanged
  devices::Reducer::How how;
};

// The reductions of one program. Not copied, because a Reduction refers to its weights.
class Reductions {
 public:
  // The program outlives the reductions. Where it reduces, can_reduce(reduce, dtype) holds. `average`: if it is not
  // average_of(); ignored unless the program averages.
  Reductions(plan::Program const& program, Dtype dtype, ReduceOp reduce, std::optional<Average> average = std::nullopt);
  Reductions(Reductions const&) = delete;
  Reductions& operator=(Reductions const&) = delete;

  // Valid as long as the reductions.
  [[nodiscard]] Reduction of(std::uint32_t instruction, Operands const& operands) const;

 private:
  plan::Program const& program_;
  bool const keeps_wide_partials_;
  Average const average_;
  float const weights_[2][2][2];  // of operand and other, by which of them are partial sums
};

// Here, because it runs once per segment.
inline Reduction Reductions::of(std::uint32_t instruction, Operands const& operands) const {
  auto const& i = program_.instructions[instruction];
  Reduction reduction;
  auto& how = reduction.how;
  if (i.is_final()) average_.divide(how);
  bool const combines = operands.operand != nullptr;
  how.wide_source = keeps_wide_partials_ && combines && i.has_wide_operand();
  how.wide_results = keeps_wide_partials_ && i.has_wide_result();
  reduction.result = how.wide_results ? operands.partial : operands.dst;
  if (!combines) {
    reduction.sources = {operands.other};
    reduction.source_count = 1;
    reduction.only_moves = how.divisor == 1 && !how.wide_results;
    return reduction;
  }
  reduction.sources = {how.wide_source ? operands.partial : operands.operand, operands.other};
  reduction.source_count = 2;
  if (i.is_final()) average_.compare(how, i.has_partial_other() ? 0 : 1);
  if (average_.scale != 1) how.weights = weights_[i.has_partial_operand() ? 1 : 0][i.has_partial_other() ? 1 : 0];
  return reduction;
}

}  // namespace chorus::engine
