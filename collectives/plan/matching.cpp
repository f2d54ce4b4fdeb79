#include "collectives/plan/matching.hpp"

#include "collectives/core/assert.hpp"

namespace chorus::plan {

Matching::Matching(std::span<Program const> programs) : programs_(programs) {
  auto messages = std::size_t{0};
  for (auto const& program : programs) {
    channel_begin_.push_back(first_send_.size());
    for (auto const& channel : program.channels) {
      first_send_.push_back(messages);
      messages += channel.sends;
    }
  }
  first_receive_.reserve(first_send_.size());
  for (auto const& program : programs)
    for (auto const& channel : program.channels)
      first_receive_.push_back(first_send_[channel_index(channel.peer, program.rank)]);

  senders_.resize(messages);
  receivers_.resize(messages);
  for (auto const& program : programs)
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
      auto const& instruction = program.instructions[i];
      if (instruction.op == Opcode::send) senders_[message(program.rank, instruction)] = {program.rank, i};
      if (instruction.receives()) receivers_[message(program.rank, instruction)] = {program.rank, i};
    }
}

std::size_t Matching::message(Rank rank, Instruction const& instruction) const {
  auto const channel = channel_index(rank, instruction.peer);
  return (instruction.op == Opcode::send ? first_send_ : first_receive_)[channel] + instruction.message;
}

std::size_t Matching::channel_index(Rank rank, Rank peer) const {
  auto const* channel = programs_[rank].channel(peer);
  CHORUS_ASSERT(channel != nullptr, "both ends of a channel know it");
  return channel_begin_[rank] + static_cast<std::size_t>(channel - programs_[rank].channels.data());
}

}  // namespace chorus::plan
