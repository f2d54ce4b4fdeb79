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
#include "worker/engine/program/addresses.hpp"
#include "worker/engine/program/partials.hpp"

namespace chorus::engine {

// Every instruction walks through its source range and its destination range once, from the front, contiguous piece by
// contiguous piece. Byte counts are multiples of the element size. Not thread-safe.
class Ranges {
 public:
  [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const { return addresses_.total_bytes(); }
  [[nodiscard]] std::vector<FlowLimit> const& flow_limits() const { return partials_.flow_limits(); }

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
  Ranges(plan::Program const& program, Dtype dtype, plan::Sizes const& sizes, PartialsLimit limit,
         std::span<std::byte const> input, std::span<std::byte> output);

  // Every instruction stands at its front, in this memory, as large as the former.
  void begin(std::span<std::byte const> input, std::span<std::byte> output);

  // What a run needs besides input and output.
  struct Own {
    std::byte* scratch = nullptr;
    std::byte* partials = nullptr;  // in f32
  };
  struct OwnBytes {
    std::uint64_t scratch = 0;
    std::uint64_t partials = 0;
  };
  [[nodiscard]] OwnBytes own_bytes() const { return {addresses_.scratch_bytes(), partials_.memory_bytes()}; }
  void lie_in(Own own) { own_ = own; }

  [[nodiscard]] plan::Program const& program() const { return program_; }
  // Partial sums of f16 and bf16 are kept in f32 where the program says so.
  [[nodiscard]] bool keeps_wide_partials() const { return keeps_wide_partials_; }
  // Where the partial sums in f32 lie of what instruction i writes next, or combines with what comes in, and up to how
  // many bytes of the vector they lie behind each other. Of one that has none the latter is no limit.
  struct Partial {
    std::byte* at = nullptr;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Partial partial(std::uint32_t i) const;

 private:
  // Where an instruction stands in one of its ranges.
  struct Cursor {
    std::uint64_t at = 0;      // bytes from the beginning of the buffer
    std::uint64_t left = 0;    // of the contiguous piece at hand
    std::uint32_t chunk = 0;   // that follows the piece
    std::uint32_t chunks = 0;  // that follow, counted from `chunk`
    std::uint64_t passed = 0;  // bytes of the range
  };
  [[nodiscard]] Cursor first(plan::Buffer buffer, std::uint32_t first_chunk, std::uint32_t chunks,
                             std::uint32_t stride) const;
  void skip(Cursor& cursor, plan::Buffer buffer, std::uint32_t stride, std::uint64_t bytes) const;
  void enter_next_piece(Cursor& cursor, plan::Buffer buffer, std::uint32_t stride) const;

  plan::Program const& program_;
  Addresses addresses_;
  std::size_t const element_bytes_;
  bool const keeps_wide_partials_;
  Partials const partials_;
  std::byte const* input_ = nullptr;
  std::byte* output_ = nullptr;
  Own own_;
  std::vector<Cursor> sources_, first_sources_;
  std::vector<Cursor> destinations_, first_destinations_;
};

}  // namespace chorus::engine
