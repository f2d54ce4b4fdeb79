// The memory that a run works on, and the arithmetic on it: turns chunk ranges of instructions into bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/layout.hpp"
#include "collectives/plan/program.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine {

// Every instruction walks through its source range and its destination range once, from the front, contiguous piece by
// contiguous piece. Byte counts are multiples of the element size. Not thread-safe.
class Workspace {
 public:
  // The program and both spans outlive the workspace. The kernels for (reduce, dtype) exist. Scratch chunk k has the
  // size of chunk k mod C.
  Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, std::uint64_t elements,
            std::span<std::byte const> input, std::span<std::byte> output);

  [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const;  // per instruction

  // The next bytes that instruction i reads, at most `limit` and as far as they are contiguous.
  [[nodiscard]] std::span<std::byte const> source(std::uint32_t i, std::uint64_t limit) const;
  void skip_source(std::uint32_t i, std::uint64_t bytes);

  // The next bytes that instruction i writes, likewise.
  [[nodiscard]] std::span<std::byte> destination(std::uint32_t i, std::uint64_t limit) const;
  void skip_destination(std::uint32_t i, std::uint64_t bytes);

  // The next bytes of a recv or recv_reduce, received elsewhere (aligned for the dtype): puts them in place or reduces
  // them.
  void take_in(std::uint32_t i, std::span<std::byte const> received);
  // The next bytes of a copy or reduce.
  void work(std::uint32_t i, std::uint64_t bytes);

 private:
  // Where an instruction stands in one of its ranges.
  struct Cursor {
    std::uint64_t at = 0;      // bytes from the beginning of the buffer
    std::uint64_t left = 0;    // of the contiguous piece at hand
    std::uint32_t chunk = 0;   // that follows the piece
    std::uint32_t chunks = 0;  // that follow, counted from `chunk`
  };
  [[nodiscard]] Cursor first(std::uint32_t first_chunk, std::uint32_t chunks, std::uint32_t stride) const;
  void skip(Cursor& cursor, std::uint32_t stride, std::uint64_t bytes) const;
  void enter_next_piece(Cursor& cursor, std::uint32_t stride) const;
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t chunk) const;  // in bytes; one past the last chunk is fine
  void finish(plan::Instruction const& instruction, std::span<std::byte> written) const;

  plan::Program const& program_;
  plan::Layout layout_;
  std::size_t element_bytes_;
  devices::Combine combine_;
  devices::Divide divide_;  // null unless the operation is avg
  std::byte const* input_;
  std::byte* output_;
  std::unique_ptr<std::byte[]> scratch_;
  std::vector<Cursor> sources_;
  std::vector<Cursor> destinations_;
};

}  // namespace chorus::engine
