// The instruction: everything a plan can say. The engine runs it, the verifier proves it, the model prices it, the
// status page draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collectives/plan/spec.hpp"

namespace chorus::plan {

enum class Opcode : std::uint8_t {
  send,         // src -> peer
  recv,         // peer -> dst
  recv_reduce,  // dst = src (op) what peer sent; src and dst may be the same range
  copy,         // dst = src
  reduce,       // dst = dst (op) src
};

enum class Buffer : std::uint8_t { input, output, scratch };

// This instruction completes the reduction of dst: every rank's contribution is in it, once. `avg` divides here.
inline constexpr std::uint8_t final_flag = 1;

// Of f16 and bf16, partial sums that never leave the rank are kept in f32, so that what is reduced in one place is
// rounded once. `wide_operand`: the partial sum that goes in (src of recv_reduce, dst of reduce) is such a one;
// `wide_result`: dst becomes one. Other dtypes ignore both. A pass sets them (widen_partials).
inline constexpr std::uint8_t wide_operand_flag = 2;
inline constexpr std::uint8_t wide_result_flag = 4;

// Of what a reduction adds, what is a sum already, of several ranks: `partial_operand`, what goes in (src of
// recv_reduce, dst of reduce); `partial_other`, what is added to it (the message of recv_reduce, src of reduce). The
// rest is one rank's contribution. An average of f32 and f64 scales contributions where they are first added. A pass
// sets them (mark_partials).
inline constexpr std::uint8_t partial_operand_flag = 8;
inline constexpr std::uint8_t partial_other_flag = 16;

struct Instruction {
  Opcode op = Opcode::send;
  Buffer src = Buffer::input;
  Buffer dst = Buffer::output;
  std::uint8_t flags = 0;
  std::uint16_t lane = 0;       // of messages: the part of the vector with a plan of its own; 0 where there is one
  std::uint16_t reserved = 0;   // zero
  std::uint32_t peer = 0;       // send, recv, recv_reduce; zero otherwise
  std::uint32_t message = 0;    // the n-th message of this direction between these two ranks, from 0
  std::uint32_t src_chunk = 0;  // first chunk read; chunks are counted as in Layout
  std::uint32_t dst_chunk = 0;  // first chunk written
  std::uint32_t chunks = 1;     // how many
  std::uint32_t stride = 1;     // distance from one chunk to the next, on both sides

  [[nodiscard]] bool is_final() const { return (flags & final_flag) != 0; }
  [[nodiscard]] bool has_wide_operand() const { return (flags & wide_operand_flag) != 0; }
  [[nodiscard]] bool has_wide_result() const { return (flags & wide_result_flag) != 0; }
  [[nodiscard]] bool has_partial_operand() const { return (flags & partial_operand_flag) != 0; }
  [[nodiscard]] bool has_partial_other() const { return (flags & partial_other_flag) != 0; }
  [[nodiscard]] bool reads_src() const { return op != Opcode::recv; }
  [[nodiscard]] bool writes_dst() const { return op != Opcode::send; }
  [[nodiscard]] bool receives() const { return op == Opcode::recv || op == Opcode::recv_reduce; }

  friend bool operator==(Instruction const&, Instruction const&) = default;
};

static_assert(sizeof(Instruction) == 32 && alignof(Instruction) == 4);
static_assert(offsetof(Instruction, lane) == 4 && offsetof(Instruction, peer) == 8);
static_assert(offsetof(Instruction, src_chunk) == 16 && offsetof(Instruction, chunks) == 24);
static_assert(std::is_trivially_copyable_v<Instruction> && std::has_unique_object_representations_v<Instruction>);

// A set of chunks of one buffer, as authors name it: `output(c)`, `input(0, chunks)`. Chunk k of scratch has the size
// of chunk k mod C of the vector.
struct Slice {
  Buffer buffer;
  std::uint32_t chunk;
  std::uint32_t count = 1;
  std::uint32_t stride = 1;
};
[[nodiscard]] constexpr Slice input(std::uint32_t chunk, std::uint32_t count = 1) {
  return {Buffer::input, chunk, count};
}
[[nodiscard]] constexpr Slice output(std::uint32_t chunk, std::uint32_t count = 1) {
  return {Buffer::output, chunk, count};
}
[[nodiscard]] constexpr Slice scratch(std::uint32_t chunk, std::uint32_t count = 1) {
  return {Buffer::scratch, chunk, count};
}

}  // namespace chorus::plan
