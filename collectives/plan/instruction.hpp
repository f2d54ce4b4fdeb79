// Instruction: the elements of every plan. The engine runs them, the verifier proves them, the model prices them, and
// the status page draws them.
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

// The instruction completes the reduction of dst: dst has every rank's contribution once. `avg` divides here.
inline constexpr std::uint8_t final_flag = 1;

// Partial sums of f16 and bf16 that never leave the rank are kept in f32, which is called wide, so that a reduction at
// one place rounds once. `wide_operand`: the operand (src of recv_reduce, dst of reduce) is wide. `wide_result`: dst
// becomes wide. Other dtypes ignore both flags. A pass sets them (widen_partials).
inline constexpr std::uint8_t wide_operand_flag = 2;
inline constexpr std::uint8_t wide_result_flag = 4;

// The two terms of a reduction are partial sums of several ranks or contributions of one. `partial_operand`: the
// operand (src of recv_reduce, dst of reduce) is a partial sum. `partial_other`: the other term (the message of
// recv_reduce, src of reduce) is a partial sum. An average of f32 and f64 scales contributions at their first addition.
// A pass sets the flags (mark_partials).
inline constexpr std::uint8_t partial_operand_flag = 8;
inline constexpr std::uint8_t partial_other_flag = 16;

struct Instruction {
  Opcode op = Opcode::send;
  Buffer src = Buffer::input;
  Buffer dst = Buffer::output;
  std::uint8_t flags = 0;
  std::uint16_t lane = 0;       // of messages: the part of the vector that has its own plan; 0 if there is one
  std::uint16_t reserved = 0;   // zero
  std::uint32_t peer = 0;       // send, recv, recv_reduce; zero otherwise
  std::uint32_t message = 0;    // number among the messages of this direction between these two ranks, from 0
  std::uint32_t src_chunk = 0;  // first chunk read; numbered as in Layout
  std::uint32_t dst_chunk = 0;  // first chunk written
  std::uint32_t chunks = 1;     // number of chunks
  std::uint32_t stride = 1;     // distance from one chunk to the next, on both sides

  [[nodiscard]] bool is_final() const { return (flags & final_flag) != 0; }
  [[nodiscard]] bool has_wide_operand() const { return (flags & wide_operand_flag) != 0; }
  [[nodiscard]] bool has_wide_result() const { return (flags & wide_result_flag) != 0; }
  [[nodiscard]] bool has_partial_operand() const { return (flags & partial_operand_flag) != 0; }
  [[nodiscard]] bool has_partial_other() const { return (flags & partial_other_flag) != 0; }
  [[nodiscard]] bool reads_src() const { return op != Opcode::recv; }
  [[nodiscard]] bool writes_dst() const { return op != Opcode::send; }
  [[nodiscard]] bool receives() const { return op == Opcode::recv || op == Opcode::recv_reduce; }
  [[nodiscard]] bool is_local() const { return op == Opcode::copy || op == Opcode::reduce; }
  [[nodiscard]] bool adds() const { return op == Opcode::reduce || op == Opcode::recv_reduce; }

  friend bool operator==(Instruction const&, Instruction const&) = default;
};

static_assert(sizeof(Instruction) == 32 && alignof(Instruction) == 4);
static_assert(offsetof(Instruction, lane) == 4 && offsetof(Instruction, peer) == 8);
static_assert(offsetof(Instruction, src_chunk) == 16 && offsetof(Instruction, chunks) == 24);
static_assert(std::is_trivially_copyable_v<Instruction> && std::has_unique_object_representations_v<Instruction>);

// A set of chunks of one buffer, which authors write as `output(c)` or `input(0, chunks)`. Chunk k of scratch has the
// size of chunk k mod C of the vector.
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
