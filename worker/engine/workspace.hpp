// The memory that a run works on, and the arithmetic on it: turns chunk ranges of instructions into bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/addresses.hpp"
#include "worker/engine/reduce_clock.hpp"

namespace chorus::engine {

// Every instruction walks through its source range and its destination range once, from the front, contiguous piece by
// contiguous piece. Byte counts are multiples of the element size. Not thread-safe.
class Workspace {
 public:
  // The program and both spans outlive the workspace. check(program, sizes) is ok, the spans hold what the program
  // addresses (plan::memory), and, where it reduces, the kernels for (reduce, dtype) exist.
  Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
            std::span<std::byte const> input, std::span<std::byte> output);

  [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const { return addresses_.total_bytes(); }

  // The next bytes that instruction i reads, at most `limit` and as far as they are contiguous.
  [[nodiscard]] std::span<std::byte const> source(std::uint32_t i, std::uint64_t limit) const;
  void skip_source(std::uint32_t i, std::uint64_t bytes);

  // Whether what instruction i, a recv, receives belongs as it is where destination() says.
  [[nodiscard]] bool receives_as_it_is(std::uint32_t i) const;

  // The next bytes that instruction i writes, likewise.
  [[nodiscard]] std::span<std::byte> destination(std::uint32_t i, std::uint64_t limit) const;
  void skip_destination(std::uint32_t i, std::uint64_t bytes);

  // The next bytes of a recv or recv_reduce, received elsewhere (aligned for the dtype): puts them in place or reduces
  // them.
  void take_in(std::uint32_t i, std::span<std::byte const> received);
  // The next bytes of a copy or reduce.
  void work(std::uint32_t i, std::uint64_t bytes);

  [[nodiscard]] Reduced const& reduced() const { return clock_.reduced(); }

 private:
  // Where an instruction stands in one of its ranges.
  struct Cursor {
    std::uint64_t at = 0;      // bytes from the beginning of the buffer
    std::uint64_t left = 0;    // of the contiguous piece at hand
    std::uint32_t chunk = 0;   // that follows the piece
    std::uint32_t chunks = 0;  // that follow, counted from `chunk`
  };
  [[nodiscard]] Cursor first(plan::Buffer buffer, std::uint32_t first_chunk, std::uint32_t chunks,
                             std::uint32_t stride) const;
  void skip(Cursor& cursor, plan::Buffer buffer, std::uint32_t stride, std::uint64_t bytes) const;
  void enter_next_piece(Cursor& cursor, plan::Buffer buffer, std::uint32_t stride) const;
  void prepare_wide_partials();
  // Where the f32 partial sums of a position lie.
  [[nodiscard]] std::byte* wide(plan::Buffer buffer, std::uint64_t at) const;
  // dst = operand (op) other at the instruction's cursors, or dst = other for recv and copy; as wide as its flags say.
  void compute(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);
  void compute_halves(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other);

  plan::Program const& program_;
  Addresses addresses_;
  std::size_t element_bytes_;
  Dtype dtype_;
  ReduceOp reduce_;
  devices::Combine combine_;  // null where nothing is reduced
  devices::Divide divide_;    // null unless the operation is avg
  devices::Widen widen_;      // null unless partial sums are kept in f32
  std::byte const* input_;
  std::byte* output_;
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> wide_output_;   // f32 for every element of the output,
  std::unique_ptr<std::byte[]> wide_scratch_;  // and of scratch, if the program keeps any there
  std::vector<Cursor> sources_;
  std::vector<Cursor> destinations_;
  ReduceClock clock_;
};

}  // namespace chorus::engine
