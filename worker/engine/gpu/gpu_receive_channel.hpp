// Messages that are received into memory of a GPU: through pinned blocks, read where they lie on the peer's GPU, or
// written by that GPU where they are to lie.
#pragma once

#include <vector>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/receive_channel.hpp"

namespace chorus::engine {

// Through blocks: frames go straight into one; what they brought is queued on the device at their end, and done when
// the device says so. A block belongs to a part of one message, from where its grant was sent to where the device has
// used it.
//
// In place: what the peer shows is queued at once, since it was granted, and the peer is told when it was read.
//
// Written: the peer is told where, as far as that may be overwritten, and says when it has done so.
//
// Which of them is known when the peer has opened the run, or when it has answered this rank's open; nothing is granted
// before.
class GpuReceiveChannel final : public ReceiveChannel, private DeviceClient {
 public:
  // As of ReceiveChannel; the work outlives the channel's use, too. `channel`: of the program.
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
  // Where a message stands, besides what a ReceiveChannel knows.
  struct Progress {
    std::uint64_t granted_blocks = 0;
    std::uint32_t held_blocks = 0;  // of these, those that are not back yet
    std::uint32_t block = none;     // into which bytes come
    std::uint64_t queued = 0;       // bytes that the device has
    std::uint64_t read = 0;         // bytes that the device has read in place
    bool is_told = true;            // of that the peer
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
  // Grants what is ready, as far as there are blocks.
  void extend(std::uint32_t m);
  // Nothing of the message can come, unless it gets a block.
  [[nodiscard]] bool is_dry(std::uint32_t m) const;
  [[nodiscard]] bool may_hold_one_more(std::uint32_t m) const;
  [[nodiscard]] std::uint64_t address(std::uint32_t block) const;

  DeviceWork& device_;
  std::uint32_t const channel_;
  Mode mode_ = Mode::undecided;
  std::vector<Progress> progress_;  // as messages_
  // In frames.
  ChannelStaging staging_;
  std::uint64_t block_bytes_ = 0;
  std::vector<std::uint32_t> free_blocks_;
  std::uint32_t held_blocks_ = 0;
  std::uint32_t dry_messages_ = 0;
  // In place.
  std::span<std::byte const> lent_;
  IndexQueue reads_;  // messages of which the peer is to be told
};

}  // namespace chorus::engine
