// Messages sent from host memory, straight from the tensor.
#pragma once

#include "worker/engine/channels/send_channel.hpp"
#include "worker/engine/program/workspace.hpp"

namespace chorus::engine {

class HostSendChannel final : public SendChannel {
 public:
  // See SendChannel; the workspace outlives the channel too.
  HostSendChannel(RunState& state, Workspace& workspace, plan::Rank peer, std::vector<std::uint32_t> instructions,
                  links::Open const& open, std::string_view description);

  void wake(std::uint32_t message) override;

 private:
  bool next_data(links::OutFrame& frame) override;
  void payload_sent(links::FrameHeader const&) override {}

  Workspace& workspace_;
};

}  // namespace chorus::engine
