// Current addresses of the instructions of a run: maps chunk ranges to memory of the host or of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/engine/program/addresses.hpp"
#include "worker/engine/program/partials.hpp"

namespace chorus::engine {

// Base of the classes that execute a program in memory. Every instruction walks once through its source range and its
// destination range, from the front, one contiguous piece after another. Byte counts are multiples of the element size,
// those of a range of codes count codes.
// Not thread-safe.
class Ranges {
 public:
  [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const { return addresses_.total_bytes(); }
  [[nodiscard]] std::vector<FlowLimit> const& flow_limits() const { return partials_.flow_limits(); }

  // Returns the next contiguous bytes that instruction i reads, at most `limit`.
  [[nodiscard]] std::span<std::byte const> source(std::uint32_t i, std::uint64_t limit) const;
  void skip_source(std::uint32_t i, std::uint64_t bytes);

  // True if instruction i is a recv whose payload belongs unchanged at destination().
  [[nodiscard]] bool receives_as_it_is(std::uint32_t i) const;

  // Returns the next contiguous bytes that instruction i writes, at most `limit`.
  [[nodiscard]] std::span<std::byte> destination(std::uint32_t i, std::uint64_t limit) const;
  void skip_destination(std::uint32_t i, std::uint64_t bytes);

 protected:
  // The program and both spans outlive the ranges. check(program, sizes) must be ok, and the spans must have the sizes
  // that the program addresses (plan::memory). The derived class provides the memory beside input and output with
  // lie_in().
  Ranges(plan::Program const& program, Dtype dtype, plan::Sizes const& sizes, PartialsLimit limit,
         std::span<std::byte const> input, std::span<std::byte> output,
         std::optional<Coding> const& coding = std::nullopt);

  // Starts again in other buffers of the same sizes: every instruction is at the front of its ranges.
  void begin(std::span<std::byte const> input, std::span<std::byte> output);

  // Memory of a run beside input and output.
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
  // True if partial sums of f16 or bf16 are kept in f32, where the flags of the instructions say so.
  [[nodiscard]] bool keeps_wide_partials() const { return keeps_wide_partials_; }
  // The f32 partial sums that instruction i writes next or combines with received data: their address, and how many
  // bytes of the vector have contiguous partial sums from there. Without a partial sum `bytes` is no limit.
  struct Partial {
    std::byte* at = nullptr;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Partial partial(std::uint32_t i) const {
    if (!keeps_wide_partials_) return {nullptr, ~std::uint64_t{0}};
    auto const place = partials_.place(i, destinations_[i].passed);
    return {own_.partials + place.offset, place.bytes};
  }

 private:
  // Position of an instruction in one of its ranges.
  struct Cursor {
    std::uint64_t at = 0;      // bytes from the beginning of the buffer
    std::uint64_t left = 0;    // of the current contiguous piece
    std::uint32_t chunk = 0;   // first chunk after the piece
    std::uint32_t chunks = 0;  // chunks after the piece, counted from `chunk`
    std::uint64_t passed = 0;  // bytes of the range before `at`
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
