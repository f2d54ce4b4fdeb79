#include "worker/engine/channels/host_send_channel.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

HostSendChannel::HostSendChannel(RunState& state, Workspace& workspace, plan::Rank peer,
                                 std::vector<std::uint32_t> instructions, links::Open const& open,
                                 std::string_view description)
    : SendChannel(state, peer, instructions, open, description, instructions.size(), Opening::with_first_message),
      workspace_(workspace) {}

void HostSendChannel::wake(std::uint32_t m) {
  auto& message = messages_[m];
  if (message.queued || sendable(message) == 0) return;
  message.queued = true;
  queue_.push(m);
}

bool HostSendChannel::next_data(links::OutFrame& frame) {
  while (!queue_.empty()) {
    auto const m = queue_.front();
    auto& message = messages_[m];
    auto const bytes = std::min(sendable(message), state_.segment_bytes);
    if (bytes == 0) {
      queue_.pop();
      message.queued = false;
      continue;
    }
    frame.payload = workspace_.source(message.instruction, bytes);
    frame.header.message = m;
    frame.header.length = static_cast<std::uint32_t>(frame.payload.size());
    frame.header.offset = message.issued;
    workspace_.skip_source(message.instruction, frame.payload.size());
    message.taken = message.issued += frame.payload.size();
    return true;
  }
  return false;
}

}  // namespace chorus::engine
