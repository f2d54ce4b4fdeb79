// Plans in which all ranks do the same, seen from where each of them stands.
#pragma once

#include "collectives/plan/instruction.hpp"

namespace chorus::plan {

// An instruction of a plan of `ranks` ranks and either one chunk or some for every rank: from what a rank does to what
// the next one does, the first one after the last, if all do the same. Scratch is no longer than the vector.
class Rotation {
 public:
  Rotation(std::uint32_t ranks, std::uint32_t chunks) : ranks_(ranks), chunks_(chunks), step_(chunks / ranks) {}

  void operator()(Instruction& i) const {
    if (i.op == Opcode::send || i.receives()) advance(i.peer, 1, ranks_);
    if (i.reads_src()) advance(i.src_chunk, step_, chunks_);
    if (i.writes_dst()) advance(i.dst_chunk, step_, chunks_);
  }

 private:
  static void advance(std::uint32_t& at, std::uint32_t by, std::uint32_t n) {
    at = at < n - by ? at + by : at - (n - by);
  }

  std::uint32_t ranks_, chunks_, step_;
};

}  // namespace chorus::plan
