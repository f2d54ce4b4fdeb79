// The memory of the host that a run works on, and the arithmetic on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "worker/devices/fold.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/program/ranges.hpp"
#include "worker/engine/trace/reduce_clock.hpp"

namespace chorus::engine {

// How floats are averaged. Each is divided by `scale`, a power of two, where it is first added. A complete sum is
// divided by what is left of the divisor; with a divisor of 1 it stays scaled.
struct Average {
  std::uint32_t divisor = 1;
  float scale = 1;
  [[nodiscard]] static Average of(Dtype dtype, std::uint32_t ranks) {
    return {ranks, devices::scale_of_average(dtype, ranks)};
  }
};

class Workspace : public Ranges {
 public:
  // As of Ranges; and, where the program reduces, the kernels for (reduce, dtype) exist. Who is ahead of another
  // instruction by flow_limits() waits for it. `average`: of avg, where it is not that of one number of each rank.
  Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes, PartialsLimit limit,
            std::span<std::byte const> input, std::span<std::byte> output,
            std::optional<Average> average = std::nullopt);

  // As newly made, in this memory, as large as the former.
  void begin(std::span<std::byte const> input, std::span<std::byte> output);
  // Of its own.
  [[nodiscard]] std::uint64_t bytes() const;

  // The next bytes of a recv or recv_reduce, received elsewhere (aligned for the dtype): puts them in place or reduces
  // them.
  void take_in(std::uint32_t i, std::span<std::byte const> received);
  // The next bytes of a copy or reduce.
  void work(std::uint32_t i, std::uint64_t bytes);

  [[nodiscard]] Reduced const& reduced() const { return clock_.reduced(); }

 private:
  // How much of `bytes` has its partial sums in one piece.
  [[nodiscard]] std::uint64_t contiguous(std::uint32_t i, std::uint64_t bytes) const;
  // dst = operand (op) other at the instruction's cursors, or dst = other for recv and copy; as wide as its flags say.
  void compute(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);
  // The same of an average of floats that are scaled as they are added.
  void compute_average(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);
  void compute_halves(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);

  Dtype dtype_;
  ReduceOp reduce_;
  devices::Combine combine_;                 // null where nothing is reduced
  devices::Divide divide_;                   // null unless the operation is avg
  devices::Widen widen_;                     // null unless partial sums are kept in f32
  Average how_;                              // of an average
  std::optional<devices::Reducer> average_;  // nothing unless numbers are weighed
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> partials_;
  ReduceClock clock_;
};

}  // namespace chorus::engine
