#include "worker/engine/shm/calls/call_channels.hpp"

#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine {
namespace {

std::uint32_t folded(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }

}  // namespace

CallChannels::CallChannels(plan::Program const& program, Addresses const& addresses, std::uint64_t fingerprint)
    : channels_(program.channels.size()) {
  auto const totals = addresses.total_bytes();
  std::vector<std::vector<std::uint64_t>> sent(channels_.size()), received(channels_.size());
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    sent[c].resize(program.channels[c].sends);
    received[c].resize(program.channels[c].receives);
  }
  for (std::size_t i = 0; i < totals.size(); ++i) {
    auto const& instruction = program.instructions[i];
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      if (program.channels[c].peer != instruction.peer) continue;
      if (instruction.op == plan::Opcode::send) sent[c][instruction.message] = totals[i];
      if (instruction.receives()) received[c][instruction.message] = totals[i];
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    auto const& channel = program.channels[c];
    channels_[c].peer = channel.peer;
    channels_[c].sends_agreement = folded(fingerprint ^ channel_digest(channel.send_digest, sent[c]));
    channels_[c].receives_agreement = folded(fingerprint ^ channel_digest(channel.receive_digest, received[c]));
    channels_[c].referred.resize(channel.sends);
  }
}

void CallChannels::begin(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes) {
  for (auto& channel : channels_) {
    channel.lane = lanes[channel.peer].get();
    channel.lane->begin(call, channel.sends_agreement, channel.receives_agreement);
    channel.first_sent = channel.lane->messages_sent;
    channel.first_received = channel.lane->messages_received;
  }
  bytes_sent_ = bytes_received_ = 0;
}

}  // namespace chorus::engine
