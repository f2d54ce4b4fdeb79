// Which instructions are the messages of each channel of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::engine {

// By message number.
struct ChannelMessages {
  std::vector<std::uint32_t> sends;
  std::vector<std::uint32_t> receives;
};

// As program.channels.
[[nodiscard]] std::vector<ChannelMessages> channel_messages(plan::Program const& program);

}  // namespace chorus::engine
