// Where the instructions of a run stand in its memory: turns chunk ranges into addresses, wherever the memory lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes.hpp"
#include "worker/engine/addresses.hpp"

namespace chorus::engine {

// Every instruction walks through its source range and its destination range once, from the front, contiguous piece by
// contiguous piece. Byte counts are multiples of the element size. Not thread-safe.
class Ranges {
 public:
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

 protected:
  // The program and both spans outlive the ranges. check(program, sizes) is ok, and the spans hold what the program
  // addresses (plan::memory). The memory of its own is given by lie_in().
  Ranges(plan::Program const& program, Dtype dtype, plan::Sizes const& sizes, std::span<std::byte const> input,
         std::span<std::byte> output);

  // Every instruction stands at its front, in this memory, as large as the former.
  void begin(std::span<std::byte const> input, std::span<std::byte> output);

  // What a run needs besides input and output.
  struct Own {
    std::byte* scratch = nullptr;
    std::byte* wide_output = nullptr;   // f32 for the elements of the output
    std::byte* wide_scratch = nullptr;  // and of scratch of which the program keeps partial sums
  };
  struct OwnBytes {
    std::uint64_t scratch = 0;
    std::uint64_t wide_output = 0;
    std::uint64_t wide_scratch = 0;
  };
  [[nodiscard]] OwnBytes own_bytes() const;
  void lie_in(Own own) { own_ = own; }

  [[nodiscard]] plan::Program const& program() const { return program_; }
  // Partial sums of f16 and bf16 are kept in f32 where the program says so.
  [[nodiscard]] bool keeps_wide_partials() const { return keeps_wide_partials_; }
  // Where the f32 partial sums lie of what instruction i writes next, and of what it combines with what comes in.
  [[nodiscard]] std::byte* wide_result(std::uint32_t i) const;
  [[nodiscard]] std::byte* wide_operand(std::uint32_t i) const;

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
  // From the first to the last byte of which a program keeps partial sums in f32.
  struct Extent {
    std::uint64_t begin = 0, end = 0;
  };
  [[nodiscard]] Extent wide_extent(plan::Buffer buffer) const;
  [[nodiscard]] std::uint64_t wide_bytes(Extent extent) const {
    return (extent.end - extent.begin) / element_bytes_ * sizeof(float);
  }
  [[nodiscard]] std::byte* wide(plan::Buffer buffer, std::uint64_t at) const;

  plan::Program const& program_;
  Addresses addresses_;
  std::size_t const element_bytes_;
  bool const keeps_wide_partials_;
  Extent wide_output_, wide_scratch_;
  std::byte const* input_ = nullptr;
  std::byte* output_ = nullptr;
  Own own_;
  std::vector<Cursor> sources_, first_sources_;
  std::vector<Cursor> destinations_, first_destinations_;
};

}  // namespace chorus::engine
