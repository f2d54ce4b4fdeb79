#include "worker/engine/program/channel_messages.hpp"

namespace chorus::engine {

std::vector<ChannelMessages> channel_messages(plan::Program const& program) {
  std::vector<std::uint32_t> channel_of(program.spec.ranks);
  std::vector<ChannelMessages> all(program.channels.size());
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    channel_of[program.channels[c].peer] = c;
    all[c].sends.resize(program.channels[c].sends);
    all[c].receives.resize(program.channels[c].receives);
  }
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    auto const& instruction = program.instructions[i];
    if (instruction.op == plan::Opcode::send) all[channel_of[instruction.peer]].sends.at(instruction.message) = i;
    if (instruction.receives()) all[channel_of[instruction.peer]].receives.at(instruction.message) = i;
  }
  return all;
}

}  // namespace chorus::engine
