// The messages of one run from this rank to one peer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/engine/gpu/loan.hpp"
#include "worker/engine/index_queue.hpp"
#include "worker/engine/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class Outlet;

// Frames come out in the order in which their bytes became ready. A message is sent without a grant if it is within the
// eager budget, which both ends compute alike (EagerBudget). Where the bytes come from is the derived class's.
class SendChannel {
 public:
  virtual ~SendChannel() = default;
  SendChannel(SendChannel const&) = delete;
  SendChannel& operator=(SendChannel const&) = delete;

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] std::uint64_t run() const { return state_.run; }

  // The outlet that carries the channel; null before it is attached and after it was lost.
  Outlet* outlet = nullptr;
  bool is_queued = false;  // with the outlet

  // As newly made, for another run of the same. None that is carried, and none that lends.
  void begin();

  // All its messages together fit into a few packets, and wait for nothing of the peer's.
  [[nodiscard]] bool is_small() const { return is_small_; }

  // The frames of a channel with one message, of so many bytes, that nothing holds back; without run and payload. The
  // channel outlives what it opens with.
  [[nodiscard]] links::Parcel parcel(std::uint32_t bytes) const;
  // A link has taken what next_frame() has to give. Where only in part, the open is not waited for: what is behind it
  // is.
  void skip(links::Taken taken);

  // Message m's instruction may have become able to go on.
  virtual void wake(std::uint32_t message) = 0;
  // Gives the open frame first. False when nothing can be sent now.
  bool next_frame(links::OutFrame& frame);
  [[nodiscard]] bool has_frame() const {
    return open_given_ ? !queue_.empty() && in_flight_ < state_.window : !holds_open_ || !queue_.empty();
  }
  // The open waits no longer for the first message to share a packet with: the peer is to know who runs what.
  void let_open() { holds_open_ = false; }
  void frame_sent(links::FrameHeader const& header);
  // Errors: LinkErrc::bad_frame for a grant that cannot be.
  [[nodiscard]] virtual Status granted(links::FrameHeader const& header);

  // What becomes of memory that the open lends; none is, unless the derived class says so. Errors: LinkErrc::bad_frame
  // for what cannot be.
  [[nodiscard]] virtual Status borrowed(links::Way way);
  [[nodiscard]] virtual Status was_read(links::FrameHeader const& header);
  // Where the next bytes of a message are to be written.
  [[nodiscard]] virtual Status has_room(links::FrameHeader const& header, links::Place const& place);
  // The peer reads nothing of this run any more, and writes nothing.
  virtual void returned() {}
  // Into memory of the peer, as that has said.
  [[nodiscard]] virtual bool writes() const { return false; }
  // Whether the peer has this rank's memory; nothing: it has not said yet.
  [[nodiscard]] virtual std::optional<bool> is_borrowed() const { return false; }
  // By which the memory comes back that the peer may still read; null: there is none.
  [[nodiscard]] virtual std::shared_ptr<Loan> loan() const { return nullptr; }

  // Frames of messages that were given to the link and not sent.
  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool finished() const { return open_sent_ && unsent_ == 0; }
  // It is the peer's turn: to accept the link, to grant, or to take what was sent.
  [[nodiscard]] bool waits_for_peer() const;
  // "sending message 2 of 6 (step 7 of 12)": the first that is not sent.
  [[nodiscard]] std::string where() const;

 protected:
  struct Message {
    std::uint32_t instruction = 0;
    bool eager = false;
    bool queued = false;
    std::uint64_t credit = 0;  // bytes that may be sent
    // Bytes that are on their way, to the link or to where it takes them from; also before they are ready, where they
    // are made on the way.
    std::uint64_t taken = 0;
    std::uint64_t issued = 0;  // bytes given to the link
  };
  // When the open is sent of a channel whose messages all go without a grant. Where the peer has to answer it before
  // there can be a message: at once.
  enum class Opening : std::uint8_t { at_once, with_first_message };
  // instructions[m] sends message m. The state outlives the channel. `queue_` is the derived class's: of messages, or
  // of whatever it sends one after the other; while it is empty there is no frame.
  SendChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, links::Open const& open,
              std::string_view description, std::size_t queue_capacity, Opening opening);

  // Bytes of the message that nothing holds back, and that were not taken.
  [[nodiscard]] std::uint64_t sendable(Message const& message) const;
  // Asked once, for the open frame: the memory that it is to lend.
  [[nodiscard]] virtual std::optional<links::Lend> lends() { return std::nullopt; }
  // The next frame of `queue_`: payload, message, length and offset, of data, lies or wrote. False: nothing was there
  // after all.
  virtual bool next_data(links::OutFrame& frame) = 0;
  // The payload of the data frame was handed over.
  virtual void payload_sent(links::FrameHeader const& header) = 0;
  // So many bytes of message m may be overwritten: they are the peer's now.
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
