// Plans in which all ranks do the same, seen from where each of them stands.
#pragma once

#include <cstdint>

#include "collectives/core/assert.hpp"
#include "collectives/plan/instruction.hpp"

namespace chorus::plan {

// Turns what one rank does into what the next one does, after the last one the first, where all do the same: peers move
// on by one rank, chunks by those of one rank. The vector is one chunk, or some for every rank; scratch is no longer.
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
