// Messages that are received into memory of a GPU, through pinned blocks.
#pragma once

#include <vector>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/receive_channel.hpp"

namespace chorus::engine {

// Frames go straight into a block; what they brought is queued on the device at their end, and done when the device
// says so. A block belongs to a part of one message, from where its grant was sent to where the device has used it.
class GpuReceiveChannel final : public ReceiveChannel, private DeviceClient {
 public:
  // As of ReceiveChannel; the work outlives the channel's use, too.
  GpuReceiveChannel(RunState& state, DeviceWork& device, ChannelStaging const& staging, plan::Rank peer,
                    std::vector<std::uint32_t> instructions, std::uint64_t digest);

  void wake(std::uint32_t message) override;
  [[nodiscard]] std::span<std::byte> space() override;
  void filled(std::size_t bytes) override;
  void take(std::span<std::byte const> payload) override;
  void took() override;

 private:
  static constexpr std::uint32_t none = ~0u;
  // Where a message stands, besides what a ReceiveChannel knows.
  struct Way {
    std::uint64_t granted_blocks = 0;
    std::uint32_t held_blocks = 0;  // of these, those that are not back yet
    std::uint32_t block = none;     // into which bytes come
    std::uint64_t queued = 0;       // bytes that the device has
  };
  void begun(Scratch) override {}
  void device_did(DevicePiece const& piece) override;
  void put(std::size_t bytes);
  void arrived_here();
  void queue_until(std::uint32_t m, std::uint64_t end, bool frees_block);
  void queue_early(std::uint32_t m);
  // Grants what is ready, as far as there are blocks.
  void extend(std::uint32_t m);
  // Nothing of the message can come, unless it gets a block.
  [[nodiscard]] bool is_dry(std::uint32_t m) const;
  [[nodiscard]] bool may_hold_one_more(std::uint32_t m) const;
  [[nodiscard]] std::uint64_t address(std::uint32_t block) const;

  DeviceWork& device_;
  ChannelStaging const staging_;
  std::uint64_t const block_bytes_;
  std::vector<Way> ways_;  // as messages_
  std::vector<std::uint32_t> free_blocks_;
  std::uint32_t held_blocks_ = 0;
  std::uint32_t dry_messages_ = 0;
};

}  // namespace chorus::engine
