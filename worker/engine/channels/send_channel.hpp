// The messages of one run from this rank to one peer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/engine/channels/loan.hpp"
#include "worker/engine/program/index_queue.hpp"
#include "worker/engine/program/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class SendConnection;

// Sends frames in the order in which their bytes become ready. A message within the eager budget, which both ends
// compute alike (EagerBudget), needs no grant. Derived classes supply the bytes.
class SendChannel {
 public:
  virtual ~SendChannel() = default;
  SendChannel(SendChannel const&) = delete;
  SendChannel& operator=(SendChannel const&) = delete;

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] std::uint64_t run() const { return state_.run; }

  // The send connection that carries the channel; null before it is attached and after it was lost.
  SendConnection* send_connection = nullptr;
  bool is_queued = false;  // in the send connection's list

  // Resets the channel for the next run of the kind. Not for channels that are attached, or that lend memory.
  void begin();

  // All messages of the channel fit into a few packets together, and none waits for the peer.
  [[nodiscard]] bool is_small() const { return is_small_; }

  // The coalesced frame of a channel with one message of `bytes` bytes that nothing holds back, without run number and
  // payload. Refers to the channel's open.
  [[nodiscard]] links::CoalescedFrame coalesced_frame(std::uint32_t bytes) const;
  // The link has taken the coalesced frame, whole or in part. If in part, only the message is still in flight, not the
  // open.
  void skip(links::Taken taken);

  // The instruction of message m may be able to go on.
  virtual void wake(std::uint32_t message) = 0;
  // Returns the open first, then data. False if nothing can be sent now.
  bool next_frame(links::OutFrame& frame);
  [[nodiscard]] bool has_frame() const {
    return open_given_ ? !queue_.empty() && in_flight_ < state_.window : !holds_open_ || !queue_.empty();
  }
  // Sends the open now instead of together with the first message, so that the peer knows which run waits.
  void let_open() { holds_open_ = false; }
  void frame_sent(links::FrameHeader const& header);
  // Errors: LinkErrc::bad_frame for an impossible grant.
  [[nodiscard]] virtual Status granted(links::FrameHeader const& header);

  // The peer's answer to the lent memory; an error unless the derived class lends. Errors: LinkErrc::bad_frame for an
  // impossible answer.
  [[nodiscard]] virtual Status borrowed(links::Way way);
  [[nodiscard]] virtual Status was_read(links::FrameHeader const& header);
  // Destination in the peer's memory for the next bytes of a message.
  [[nodiscard]] virtual Status has_room(links::FrameHeader const& header, links::Place const& place);
  // The peer neither reads nor writes anything of this run any more.
  virtual void returned() {}
  // True if this rank writes into the peer's memory, as the peer has asked.
  [[nodiscard]] virtual bool writes() const { return false; }
  // Whether the peer has mapped this rank's memory; empty before the peer has answered.
  [[nodiscard]] virtual std::optional<bool> is_borrowed() const { return false; }
  // The loan of memory that the peer may still read; null if there is none.
  [[nodiscard]] virtual std::shared_ptr<Loan> loan() const { return nullptr; }

  // Data frames that the link has and has not sent yet.
  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool finished() const { return open_sent_ && unsent_ == 0; }
  // True if the next move is the peer's: to accept the link, to grant, or to take what was sent.
  [[nodiscard]] bool waits_for_peer() const;
  // "sending message 2 of 6 (step 7 of 12)": the first message that is not sent.
  [[nodiscard]] std::string where() const;

 protected:
  struct Message {
    std::uint32_t instruction = 0;
    bool eager = false;
    bool queued = false;
    std::uint64_t credit = 0;  // bytes that may be sent
    // Bytes that have left for the link, or for the block or memory from which the link takes them. May exceed what is
    // ready, where bytes are produced on the way.
    std::uint64_t taken = 0;
    std::uint64_t issued = 0;  // bytes given to the link
  };
  // When the open is sent if all messages of the channel are eager. At once if no message can be sent before the peer
  // has answered the open.
  enum class Opening : std::uint8_t { at_once, with_first_message };
  // instructions[m] sends message m. The state outlives the channel. The derived class fills `queue_` with messages or
  // other units that it sends in order; there is no frame while it is empty.
  SendChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, links::Open const& open,
              std::string_view description, std::size_t queue_capacity, Opening opening);

  // Bytes of the message that may be sent and were not taken.
  [[nodiscard]] std::uint64_t sendable(Message const& message) const;
  // The memory that the open lends; called once.
  [[nodiscard]] virtual std::optional<links::Lend> lends() { return std::nullopt; }
  // Makes the next frame of `queue_`: payload, message, length and offset of a data, lies or wrote frame. False if
  // there is none after all.
  virtual bool next_data(links::OutFrame& frame) = 0;
  // The link has sent the payload of the data frame.
  virtual void payload_sent(links::FrameHeader const& header) = 0;
  // These bytes of message m belong to the peer now, and may be overwritten.
  void handed_over(std::uint32_t m, std::uint64_t bytes);

  RunState& state_;
  std::vector<Message> messages_;
  IndexQueue queue_;

 private:
  plan::Rank const peer_;
  Opening const opening_;
  bool is_small_ = false;
  std::uint32_t in_flight_ = 0;
  std::uint32_t unsent_ = 0;  // messages
  bool holds_open_ = false, open_given_ = false, open_sent_ = false;
  links::OpenBytes open_{};
  std::uint32_t open_bytes_ = 0;
};

}  // namespace chorus::engine
