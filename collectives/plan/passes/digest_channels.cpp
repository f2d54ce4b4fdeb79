#include <algorithm>
#include <array>
#include <bit>

#include "collectives/plan/digest.hpp"
#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {

static_assert(std::endian::native == std::endian::little, "digests are over little-endian numbers");

namespace {

constexpr auto coded_bit = std::uint32_t{1} << 31;

}  // namespace

void digest_channels(Program& program, bool same_chunks_on_both_ends) {
  for (auto const& instruction : program.instructions) {
    bool const sends = instruction.op == Opcode::send;
    if (!sends && !instruction.receives()) continue;
    auto const channel = std::lower_bound(program.channels.begin(), program.channels.end(), instruction.peer,
                                          [](Channel const& c, Rank rank) { return c.peer < rank; });
    std::array<std::uint32_t, 5> record{instruction.message, instruction.lane, instruction.chunks, 0, 0};
    if (same_chunks_on_both_ends) {
      record[3] = (sends ? instruction.src_chunk : instruction.dst_chunk) % program.chunks;
      record[4] = instruction.stride;
      bool const is_coded = sends ? program.is_coded(instruction.src, instruction.src_chunk)
                                  : program.is_coded(instruction.dst, instruction.dst_chunk);
      if (is_coded) record[3] |= coded_bit;
    }
    auto& chain = sends ? channel->send_digest : channel->receive_digest;
    chain = digest(record.data(), sizeof record, chain);
  }
}

}  // namespace chorus::plan
