// The messages of one run from one peer to this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/devices/cuda/lending.hpp"
#include "worker/engine/program/index_queue.hpp"
#include "worker/engine/program/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class ReceiveConnection;

using Borrowed = std::shared_ptr<devices::BorrowedArena const>;

// Memory that one link receives into before reducing from there: small enough for the processor's cache.
inline constexpr std::size_t scratch_bytes = 128 * 1024;
using Scratch = std::span<std::byte, scratch_bytes>;

// Grants what the dependencies of its instructions allow, and checks what arrives. Derived classes place the bytes.
class ReceiveChannel {
 public:
  virtual ~ReceiveChannel() = default;
  ReceiveChannel(ReceiveChannel const&) = delete;
  ReceiveChannel& operator=(ReceiveChannel const&) = delete;

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] std::uint64_t run() const { return state_.run; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  // The receive connection that carries the channel; null until the peer's open was accepted and after it was lost.
  ReceiveConnection* receive_connection = nullptr;
  std::uint64_t receive_connection_number = 0;  // of the connection that carries the channel, or did
  bool is_queued = false;                       // in the receive connection's list

  // Resets the channel for the next run of the kind. Not for channels that are attached, or that read in place.
  void begin();

  // The peer's open matches. `lent`: memory in which the peer's messages are read; null: they come in data frames.
  virtual void opened(Borrowed lent);
  // The peer's open matches and its answer is kept back: no data may come before the answer.
  void holds_open() { takes_no_data("its open was not answered yet"); }
  // The peer's GPU may write the messages to their destinations: all lie in one arena, and are stored unchanged.
  [[nodiscard]] virtual bool may_be_written() const { return false; }
  [[nodiscard]] virtual bool is_written() const { return false; }
  // Instead of opened(): the peer writes.
  virtual void opened_to_writes() {}
  // The peer reports how far it has written. Errors: LinkErrc::bad_frame with the reason.
  [[nodiscard]] virtual Status wrote(links::FrameHeader const& header);
  [[nodiscard]] virtual bool reads_in_place() const { return false; }
  [[nodiscard]] bool is_opened() const { return opened_; }
  [[nodiscard]] bool finished() const { return opened_ && unreceived_ == 0; }
  // True if the next move is the peer's: to open the run, or to send what was granted.
  [[nodiscard]] bool waits_for_peer() const;
  // Size of all eager messages together.
  [[nodiscard]] std::uint64_t stage_bytes() const { return stage_bytes_; }
  [[nodiscard]] std::string where() const;  // "receiving message 2 of 6 (step 7 of 12)": the first that is incomplete

  // The instruction of message m may be able to go on.
  virtual void wake(std::uint32_t message) = 0;

  // Control frames for the peer: grants, and reports of what was read.
  [[nodiscard]] bool has_word() const { return !queue_.empty() || has_read_; }
  bool next_word(links::FrameHeader& header);

  // Location of the next bytes of a message in lent memory. Errors: LinkErrc::bad_frame with the reason.
  [[nodiscard]] virtual Status lies(links::FrameHeader const& header, links::Place const& place);

  // Begins a data frame; its payload follows through space() and filled() until header.length bytes have come. One
  // frame at a time. Errors: LinkErrc::bad_frame with the reason.
  [[nodiscard]] Status begin_frame(links::FrameHeader const& header, Scratch scratch);
  [[nodiscard]] virtual std::span<std::byte> space() = 0;
  virtual void filled(std::size_t bytes) = 0;
  // Alternative to space() and filled() for a payload that is in memory already: take() uses it at once, took() counts
  // it. After withdrawn() the channel takes no more.
  virtual void take(std::span<std::byte const> payload) = 0;
  virtual void took() = 0;
  void withdrawn() {
    is_withdrawn_ = true;
    takes_no_data("it was given up");
  }
  [[nodiscard]] bool is_withdrawn() const { return is_withdrawn_; }

 protected:
  struct Message {
    std::uint32_t instruction = 0;
    bool eager = false;
    bool queued = false;
    std::uint64_t granted = 0;   // bytes that may arrive
    std::uint64_t arrived = 0;   // bytes of whole frames
    std::uint64_t stage_at = 0;  // where the message's stage begins: eager bytes may come before they can be used
  };
  // instructions[m] receives message m. The state outlives the channel.
  ReceiveChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, std::uint64_t digest);

  void grant(std::uint32_t m, std::uint64_t up_to);
  void takes_no_data(char const* why) { why_no_data_ = why; }
  // Counts bytes of the message that are in this rank's memory now; `completes_message`: they are its last ones.
  void count(std::uint64_t bytes, bool completes_message);
  // Next report of what was read; only while has_read_.
  virtual bool next_read(links::FrameHeader&) { return false; }
  // The current frame has passed the checks.
  virtual void begun(Scratch scratch) = 0;
  // The whole current frame has arrived.
  void arrived();

  RunState& state_;
  std::vector<Message> messages_;
  // State of the current frame.
  std::uint32_t message_ = 0;
  std::uint32_t frame_bytes_ = 0;
  std::size_t frame_left_ = 0;
  bool has_read_ = false;  // there are reads to report to the peer

 private:
  plan::Rank const peer_;
  std::uint64_t const digest_;
  IndexQueue queue_;  // messages with a grant to send
  std::uint64_t stage_bytes_ = 0;
  std::uint32_t unreceived_ = 0;  // messages
  bool opened_ = false;
  bool is_withdrawn_ = false;
  char const* why_no_data_ = nullptr;
};

}  // namespace chorus::engine
