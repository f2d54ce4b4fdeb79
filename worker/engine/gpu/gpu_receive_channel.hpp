// Messages received into memory of a GPU: through pinned blocks, read in place on the peer's GPU, or written by the
// peer's GPU.
#pragma once

#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/gpu/device_work.hpp"

namespace chorus::engine {

// Through blocks: frames are received straight into a block; at the end of a frame its bytes are queued on the device,
// and are done when the device reports it. A block belongs to a part of one message from the sending of its grant until
// the device has used it.
//
// In place: bytes that the peer shows were granted already and are queued at once; the peer is told when they are read.
//
// Written: the peer is told the place as far as it may be overwritten, and reports when it has written.
//
// The mode is decided when the peer has opened the run, or when it has answered this rank's open. Before that nothing
// is granted.
class GpuReceiveChannel final : public ReceiveChannel, private DeviceClient {
 public:
  // See ReceiveChannel. The work outlives the use of the channel too. `channel`: number in the program.
  GpuReceiveChannel(RunState& state, DeviceWork& device, std::uint32_t channel, plan::Rank peer,
                    std::vector<std::uint32_t> instructions, std::uint64_t digest);

  void opened(Borrowed lent) override;
  [[nodiscard]] bool may_be_written() const override;
  [[nodiscard]] bool is_written() const override { return mode_ == Mode::written; }
  void opened_to_writes() override;
  [[nodiscard]] Status wrote(links::FrameHeader const& header) override;
  [[nodiscard]] bool reads_in_place() const override { return mode_ == Mode::in_place; }
  void wake(std::uint32_t message) override;
  [[nodiscard]] Status lies(links::FrameHeader const& header, links::Place const& place) override;
  [[nodiscard]] std::span<std::byte> space() override;
  void filled(std::size_t bytes) override;
  void take(std::span<std::byte const> payload) override;
  void took() override;

 private:
  enum class Mode : std::uint8_t { undecided, in_frames, in_place, written };
  static constexpr std::uint32_t none = ~0u;
  // State of a message beyond ReceiveChannel::Message.
  struct Progress {
    std::uint64_t granted_blocks = 0;
    std::uint32_t held_blocks = 0;  // granted blocks that are not free again yet
    std::uint32_t block = none;     // the block that bytes arrive in
    std::uint64_t queued = 0;       // bytes given to the device
    std::uint64_t read = 0;         // bytes that the device has read in place
    bool is_told = true;            // the peer knows of all bytes in `read`
  };
  void begun(Scratch) override {}
  bool next_read(links::FrameHeader& header) override;
  void device_did(DevicePiece const& piece) override;
  void receive_in_frames();
  void read_in_place(Borrowed lent);
  void did_read(DevicePiece const& piece);
  void make_room(std::uint32_t m);
  void takes_nothing_early();
  void put(std::size_t bytes);
  void arrived_here();
  void queue_until(std::uint32_t m, std::uint64_t end, bool frees_block);
  void queue_early(std::uint32_t m);
  // Grants bytes that are ready, as far as there are blocks.
  void extend(std::uint32_t m);
  // True if nothing of the message can arrive unless it gets a block.
  [[nodiscard]] bool is_dry(std::uint32_t m) const;
  [[nodiscard]] bool may_hold_one_more(std::uint32_t m) const;
  [[nodiscard]] std::uint64_t address(std::uint32_t block) const;

  DeviceWork& device_;
  std::uint32_t const channel_;
  Mode mode_ = Mode::undecided;
  std::vector<Progress> progress_;  // by message
  // For frames.
  ChannelStaging staging_;
  std::uint64_t block_bytes_ = 0;
  std::vector<std::uint32_t> free_blocks_;
  std::uint32_t held_blocks_ = 0;
  std::uint32_t dry_messages_ = 0;
  // For reading in place.
  std::span<std::byte const> lent_;
  IndexQueue reads_;  // messages with reads to report to the peer
};

}  // namespace chorus::engine
