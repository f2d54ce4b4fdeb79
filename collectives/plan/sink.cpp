#include "collectives/core/assert.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::plan {
namespace {

std::uint8_t flags_of(Final final) { return final == Final::yes ? final_flag : std::uint8_t{0}; }

// Fields that an opcode does not use keep their defaults: one meaning, one form (see verify::check).
Instruction make(Opcode op, std::uint32_t count, std::uint32_t stride) {
  Instruction instruction;
  instruction.op = op;
  instruction.chunks = count;
  instruction.stride = count == 1 ? 1 : stride;
  return instruction;
}

void read_from(Instruction& instruction, Slice src) {
  instruction.src = src.buffer;
  instruction.src_chunk = src.chunk;
}

void write_to(Instruction& instruction, Slice dst) {
  instruction.dst = dst.buffer;
  instruction.dst_chunk = dst.chunk;
}

Instruction between(Opcode op, Slice src, Slice dst, Final final) {
  CHORUS_ASSERT(src.count == dst.count && (src.count == 1 || src.stride == dst.stride), "slices of one shape");
  auto instruction = make(op, src.count, src.stride);
  read_from(instruction, src);
  write_to(instruction, dst);
  instruction.flags = flags_of(final);
  return instruction;
}

}  // namespace

void Sink::send(Rank peer, Slice src) {
  auto instruction = make(Opcode::send, src.count, src.stride);
  read_from(instruction, src);
  instruction.peer = peer;
  put(instruction);
}

void Sink::recv(Rank peer, Slice dst) {
  auto instruction = make(Opcode::recv, dst.count, dst.stride);
  write_to(instruction, dst);
  instruction.peer = peer;
  put(instruction);
}

void Sink::recv_reduce(Rank peer, Slice operand, Slice dst, Final final) {
  auto instruction = between(Opcode::recv_reduce, operand, dst, final);
  instruction.peer = peer;
  put(instruction);
}

void Sink::copy(Slice src, Slice dst, Final final) { put(between(Opcode::copy, src, dst, final)); }

void Sink::reduce(Slice src, Slice dst, Final final) { put(between(Opcode::reduce, src, dst, final)); }

}  // namespace chorus::plan
