// The memory of the host that a run works on, and the arithmetic on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "worker/devices/reduce.hpp"
#include "worker/engine/ranges.hpp"
#include "worker/engine/reduce_clock.hpp"

namespace chorus::engine {

class Workspace : public Ranges {
 public:
  // As of Ranges; and, where the program reduces, the kernels for (reduce, dtype) exist. Who is ahead of another
  // instruction by lags() waits for it.
  Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes, PartialsLimit limit,
            std::span<std::byte const> input, std::span<std::byte> output);

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
  void compute_halves(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);

  Dtype dtype_;
  ReduceOp reduce_;
  devices::Combine combine_;  // null where nothing is reduced
  devices::Divide divide_;    // null unless the operation is avg
  devices::Widen widen_;      // null unless partial sums are kept in f32
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> partials_;
  ReduceClock clock_;
};

}  // namespace chorus::engine
