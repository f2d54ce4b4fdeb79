// Messages that go out from memory of a GPU: through pinned blocks, read by the peer's GPU where they lie, or written
// by this one where they are to lie.
#pragma once

#include <deque>
#include <vector>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/receive_channel.hpp"
#include "worker/engine/send_channel.hpp"

namespace chorus::engine {

// Through blocks: what may be sent is copied into one; when the device says that it is there, its frames go out; and
// when they have gone, the block is free. While one block is on the wire the next is being copied.
//
// In place: what may be read is shown to the peer in a frame of its own, and counts as sent when the peer says that it
// was read: what would overwrite it waits for that as for any send. Nothing is eager.
//
// Written: what the peer has room for is copied there, on the device, and the peer is told when that is done; what is
// the result of a reduction goes there with it, if the room is known by then.
//
// Which of them is known when the peer has answered the open that lends the memory; at once, if it lends none.
class GpuSendChannel final : public SendChannel, private DeviceSharer {
 public:
  // As of SendChannel; the work outlives the channel's use, too. `channel`: of the program. `back`: what the same peer
  // sends in the same run, as long as the channel; null: nothing.
  GpuSendChannel(RunState& state, DeviceWork& device, std::uint32_t channel, plan::Rank peer,
                 std::vector<std::uint32_t> instructions, links::Open const& open, std::string_view description,
                 ReceiveChannel const* back);

  void wake(std::uint32_t message) override;
  [[nodiscard]] Status granted(links::FrameHeader const& header) override;
  [[nodiscard]] Status borrowed(links::Way way) override;
  [[nodiscard]] bool writes() const override { return mode_ == Mode::writes; }
  [[nodiscard]] std::optional<bool> is_borrowed() const override;
  [[nodiscard]] Status has_room(links::FrameHeader const& header, links::Place const& place) override;
  [[nodiscard]] Status was_read(links::FrameHeader const& header) override;
  void returned() override;
  [[nodiscard]] std::shared_ptr<Loan> loan() const override;

 private:
  enum class Mode : std::uint8_t { undecided, in_frames, in_place, writes };
  // What a block holds.
  struct Block {
    std::uint32_t message = 0;
    std::uint64_t bytes = 0;
    std::uint64_t issued = 0;  // bytes given to the link
    std::uint64_t sent = 0;
  };
  [[nodiscard]] std::optional<links::Lend> lends() override;
  bool next_data(links::OutFrame& frame) override;
  void payload_sent(links::FrameHeader const& header) override;
  void device_did(DevicePiece const& piece) override;
  [[nodiscard]] std::optional<Share> shares(std::span<std::byte const> result) override;
  // Of the first room of message m, what is written next.
  [[nodiscard]] std::byte* take_room(std::uint32_t m, std::uint64_t bytes);
  void send_in_frames();
  void show_in_place();
  [[nodiscard]] Status write_there();
  void goes_without_blocks(Mode mode);
  void write(std::uint32_t m);
  bool next_written(links::OutFrame& frame);
  // Of a message, what goes at a time without blocks.
  [[nodiscard]] std::uint64_t part_bytes(Message const& message) const;
  bool next_block(links::OutFrame& frame);
  bool next_place(links::OutFrame& frame);
  void fill_blocks();
  [[nodiscard]] bool is_read(Message const& message) const;
  void list(std::uint32_t message, IndexQueue& queue);

  DeviceWork& device_;
  std::uint32_t const channel_;
  ReceiveChannel const* const back_;
  Mode mode_ = Mode::undecided;
  bool lends_ = false;
  IndexQueue waiting_;  // messages with bytes that are still to go, until `queue_` has them or their blocks
  // In frames.
  ChannelStaging staging_;
  std::uint64_t block_bytes_ = 0;
  std::vector<Block> blocks_;
  IndexQueue free_;     // blocks; those that are filled are in queue_,
  IndexQueue on_wire_;  // and those of which a frame was given to the link also here
  // In place.
  std::vector<links::Place> places_;  // of frames that the link has, in turn
  std::uint64_t shown_ = 0;           // frames
  std::shared_ptr<Loan> loan_;
  // Written.
  std::span<std::byte> target_;
  std::vector<std::deque<links::Place>> rooms_;  // what is left of them, by message
  std::vector<std::uint64_t> written_;           // bytes, by message
};

}  // namespace chorus::engine
