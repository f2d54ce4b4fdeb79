#include <algorithm>

#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {

void number_messages(Program& program) {
  // The channels count the messages here; digest_channels adds the digests.
  auto& channels = program.channels;
  channels.clear();
  for (auto const& instruction : program.instructions)
    if (instruction.op == Opcode::send || instruction.receives())
      if (channels.empty() || channels.back().peer != instruction.peer) channels.push_back({.peer = instruction.peer});
  std::sort(channels.begin(), channels.end(), [](auto const& a, auto const& b) { return a.peer < b.peer; });
  channels.erase(
      std::unique(channels.begin(), channels.end(), [](auto const& a, auto const& b) { return a.peer == b.peer; }),
      channels.end());

  auto const channel_to = [&](Rank peer) {
    return std::lower_bound(channels.begin(), channels.end(), peer,
                            [](Channel const& channel, Rank rank) { return channel.peer < rank; });
  };
  for (auto& instruction : program.instructions) {
    if (instruction.op == Opcode::send) instruction.message = channel_to(instruction.peer)->sends++;
    if (instruction.receives()) instruction.message = channel_to(instruction.peer)->receives++;
  }
}

}  // namespace chorus::plan
