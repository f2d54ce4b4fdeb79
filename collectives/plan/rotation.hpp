// Rotation: for plans in which all ranks do the same, relative to their own rank.
#pragma once

#include <cstdint>

#include "collectives/core/assert.hpp"
#include "collectives/plan/instruction.hpp"

namespace chorus::plan {

// Turns an instruction of one rank into that of the next rank; the last rank is followed by the first. Peers advance by
// one rank, and chunks by the chunks of one rank. The vector has one chunk, or the same number for every rank; scratch
// is not longer than the vector.
class Rotation {
 public:
  Rotation(std::uint32_t ranks, std::uint32_t chunks) : ranks_(ranks), chunks_(chunks), step_(chunks / ranks) {
    CHORUS_ASSERT(chunks == 1 || chunks % ranks == 0, "as many chunks for every rank");
  }

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
