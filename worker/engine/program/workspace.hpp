// Host memory of a run, and the arithmetic in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "worker/devices/reduce.hpp"
#include "worker/engine/program/ranges.hpp"
#include "worker/engine/program/reduction.hpp"
#include "worker/engine/trace/reduce_clock.hpp"

namespace chorus::engine {

// Executes the instructions of one rank on the CPU. Owned by a run or by a LocalCollective, used by one thread.
// Allocates scratch and partial sums in the constructor only.
class Workspace : public Ranges {
 public:
  // Preconditions of Ranges; where the program reduces, can_reduce(reduce, dtype) holds. The caller makes an
  // instruction wait that would exceed one of flow_limits(). `average`: for avg where a rank contributes more or less
  // than one operand. `coding`: of the program's coded chunks, if they hold codes.
  Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes, PartialsLimit limit,
            std::span<std::byte const> input, std::span<std::byte> output,
            std::optional<Average> average = std::nullopt, std::optional<Coding> const& coding = std::nullopt);

  // Starts again in other buffers of the same sizes.
  void begin(std::span<std::byte const> input, std::span<std::byte> output);
  // Bytes of scratch and of partial sums.
  [[nodiscard]] std::uint64_t bytes() const;

  // Takes the next bytes of a recv or recv_reduce, which were received into other memory (aligned for the dtype):
  // copies or reduces them.
  void take_in(std::uint32_t i, std::span<std::byte const> received);
  // Executes the next bytes of a copy or reduce. If it encodes or decodes: whole units, except at the end.
  void work(std::uint32_t i, std::uint64_t bytes);

  [[nodiscard]] Reduced const& reduced() const { return clock_.reduced(); }

 private:
  void encode(std::uint32_t i, std::uint64_t bytes);
  void decode(std::uint32_t i, std::uint64_t bytes);
  // Returns how much of `bytes` has contiguous partial sums.
  [[nodiscard]] std::uint64_t contiguous(std::uint32_t i, std::uint64_t bytes) const;
  // Computes dst = operand (op) other at the instruction's cursors, or dst = other for recv and copy. The flags of the
  // instruction tell which of them are f32 partial sums.
  void compute(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);

  Reductions const reductions_;
  devices::Reducer const reducer_;
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> partials_;
  std::optional<Coding> coding_;
  std::unique_ptr<std::byte[]> decoded_;  // room for terms that are decoded and added; null without codes
  ReduceClock clock_;
};

}  // namespace chorus::engine
