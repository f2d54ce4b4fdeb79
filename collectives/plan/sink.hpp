// Sink: an algorithm emits the instructions of one round of one rank into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/plan/instruction.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

enum class Final : bool { no, yes };

// Collects instructions in the order of the calls. The two slices of a call have equal count and stride. Fields that an
// opcode does not use keep their defaults: one meaning, one form (see verify::check). All code is in the header and
// makes instructions in place, since a simulation of many ranks emits hundreds of millions.
class Sink {
 public:
  void send(Rank peer, Slice src) { put(Opcode::send, peer, src, {Buffer::output, 0}, src, Final::no); }
  void recv(Rank peer, Slice dst) { put(Opcode::recv, peer, {Buffer::input, 0}, dst, dst, Final::no); }
  // dst = operand (op) message
  void recv_reduce(Rank peer, Slice operand, Slice dst, Final final = Final::no) {
    put(Opcode::recv_reduce, peer, operand, dst, final);
  }
  void copy(Slice src, Slice dst, Final final = Final::no) { put(Opcode::copy, 0, src, dst, final); }
  // dst = dst (op) src
  void reduce(Slice src, Slice dst, Final final = Final::no) { put(Opcode::reduce, 0, src, dst, final); }

  [[nodiscard]] std::span<Instruction const> instructions() const& { return instructions_; }
  [[nodiscard]] std::vector<Instruction> instructions() && { return std::move(instructions_); }
  [[nodiscard]] std::size_t size() const { return instructions_.size(); }
  void clear() { instructions_.clear(); }

 private:
  void put(Opcode op, Rank peer, Slice src, Slice dst, Final final) {
    CHORUS_ASSERT(src.count == dst.count && (src.count == 1 || src.stride == dst.stride), "slices of one shape");
    put(op, peer, src, dst, src, final);
  }
  void put(Opcode op, Rank peer, Slice src, Slice dst, Slice shape, Final final) {
    auto& i = instructions_.emplace_back();
    i.op = op;
    i.src = src.buffer;
    i.dst = dst.buffer;
    i.flags = final == Final::yes ? final_flag : std::uint8_t{0};
    i.peer = peer;
    i.src_chunk = src.chunk;
    i.dst_chunk = dst.chunk;
    i.chunks = shape.count;
    i.stride = shape.count == 1 ? 1 : shape.stride;
  }

  std::vector<Instruction> instructions_;
};

}  // namespace chorus::plan
