#include "collectives/plan/program.hpp"

#include <algorithm>

namespace chorus::plan {

Channel const* Program::channel(Rank peer) const {
  auto const at = std::lower_bound(channels.begin(), channels.end(), peer,
                                   [](Channel const& c, Rank wanted) { return c.peer < wanted; });
  return at != channels.end() && at->peer == peer ? &*at : nullptr;
}

bool in_bounds(Program const& program, Buffer buffer, std::uint32_t chunk, Instruction const& instruction) {
  auto const range = buffer == Buffer::input    ? program.input
                     : buffer == Buffer::output ? program.output
                                                : ChunkRange{0, program.scratch_chunks};
  auto const last = chunk + std::uint64_t{instruction.stride} * (instruction.chunks - std::uint64_t{1});
  return chunk >= range.first && last < std::uint64_t{range.first} + range.count;
}

std::size_t Program::memory_bytes() const {
  auto const bytes = [](auto const& vector) { return vector.capacity() * sizeof(vector.front()); };
  return sizeof *this + bytes(instructions) + bytes(round_begin) + bytes(dependencies) + bytes(dependency_begin) +
         bytes(channels);
}

}  // namespace chorus::plan
