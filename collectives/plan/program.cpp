#include "collectives/plan/program.hpp"

#include <algorithm>

namespace chorus::plan {

Channel const* Program::channel(Rank peer) const {
  auto const at = std::lower_bound(channels.begin(), channels.end(), peer,
                                   [](Channel const& c, Rank wanted) { return c.peer < wanted; });
  return at != channels.end() && at->peer == peer ? &*at : nullptr;
}

std::size_t Program::memory_bytes() const {
  auto const bytes = [](auto const& vector) { return vector.capacity() * sizeof(vector.front()); };
  return sizeof *this + bytes(instructions) + bytes(round_begin) + bytes(dependencies) + bytes(dependency_begin) +
         bytes(channels);
}

}  // namespace chorus::plan
