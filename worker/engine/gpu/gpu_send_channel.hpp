// Messages that go out from memory of a GPU, through pinned blocks.
#pragma once

#include <vector>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/send_channel.hpp"

namespace chorus::engine {

// What may be sent is copied into a block; when the device says that it is there, its frames go out; and when they have
// gone, the block is free. While one block is on the wire the next is being copied.
class GpuSendChannel final : public SendChannel, private DeviceClient {
 public:
  // As of SendChannel; the work outlives the channel's use, too.
  GpuSendChannel(RunState& state, DeviceWork& device, ChannelStaging const& staging, plan::Rank peer,
                 std::vector<std::uint32_t> instructions, links::Open const& open, std::string_view description);

  void wake(std::uint32_t message) override;

 private:
  // What a block holds.
  struct Block {
    std::uint32_t message = 0;
    std::uint64_t bytes = 0;
    std::uint64_t issued = 0;  // bytes given to the link
    std::uint64_t sent = 0;
  };
  bool next_data(links::OutFrame& frame) override;
  void payload_sent(links::FrameHeader const& header) override;
  void device_did(DevicePiece const& piece) override;
  void fill_blocks();

  DeviceWork& device_;
  ChannelStaging const staging_;
  std::uint64_t const block_bytes_;
  std::vector<Block> blocks_;
  IndexQueue waiting_;  // messages with bytes to be copied
  IndexQueue free_;     // blocks; those that are filled are in queue_,
  IndexQueue on_wire_;  // and those of which a frame was given to the link also here
};

}  // namespace chorus::engine
