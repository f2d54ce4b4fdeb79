// The instructions that send and receive the messages of each channel of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::engine {

// Numbers of the instructions of one channel, by message number.
struct ChannelMessages {
  std::vector<std::uint32_t> sends;
  std::vector<std::uint32_t> receives;
};

// Returns one entry per channel, in the order of program.channels.
[[nodiscard]] std::vector<ChannelMessages> channel_messages(plan::Program const& program);

}  // namespace chorus::engine
