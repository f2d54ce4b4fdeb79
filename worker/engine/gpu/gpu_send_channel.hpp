// Messages sent from memory of a GPU: through pinned blocks, read in place by the peer's GPU, or written by this GPU
// into the peer's memory.
#pragma once

#include <deque>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/channels/send_channel.hpp"
#include "worker/engine/gpu/device_work.hpp"

namespace chorus::engine {

// Through blocks: bytes that may be sent are copied into a block; when the device has done that, the frames of the
// block are sent; after that the block is free. While one block is on the wire the next is being copied.
//
// In place: bytes that may be read are shown to the peer in a frame, and count as sent when the peer has read them:
// overwriting waits for that as for any send. Nothing is eager.
//
// Written: bytes that the peer has room for are copied there on the device, and the peer is told when that is done. The
// result of a reduction is written there by the same pass if the room is known by then.
//
// The mode is decided when the peer has answered the open that lends the memory; at once if the open lends none.
class GpuSendChannel final : public SendChannel, private DeviceSharer {
 public:
  // See SendChannel. The work outlives the use of the channel too. `channel`: number in the program. `back`: the
  // channel from the same peer in the same run, which lives as long; null if there is none.
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
  // Contents of a block.
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
  // Takes room for the next bytes of message m from its first place.
  [[nodiscard]] std::byte* take_room(std::uint32_t m, std::uint64_t bytes);
  void send_in_frames();
  void show_in_place();
  [[nodiscard]] Status write_there();
  void goes_without_blocks(Mode mode);
  void write(std::uint32_t m);
  bool next_written(links::OutFrame& frame);
  // Size of the parts in which a message is sent without blocks.
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
  IndexQueue waiting_;  // messages with bytes to send that are neither in `queue_` nor in blocks
  // For frames.
  ChannelStaging staging_;
  std::uint64_t block_bytes_ = 0;
  std::vector<Block> blocks_;
  IndexQueue free_;     // free blocks; filled ones are in queue_
  IndexQueue on_wire_;  // blocks with a frame given to the link; they are in queue_ too
  // For reading in place.
  std::vector<links::Place> places_;  // of the frames that the link has; reused in turn
  std::uint64_t shown_ = 0;           // number of frames
  std::shared_ptr<Loan> loan_;
  // For writing.
  std::span<std::byte> target_;
  std::vector<std::deque<links::Place>> rooms_;  // free room at the peer, by message
  std::vector<std::uint64_t> written_;           // bytes, by message
};

}  // namespace chorus::engine
