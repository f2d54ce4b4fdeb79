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
#include "worker/engine/index_queue.hpp"
#include "worker/engine/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class Inlet;

using Borrowed = std::shared_ptr<devices::BorrowedArena const>;

// Memory that one link receives into before it is reduced from there: small enough to stay in the processor's cache.
inline constexpr std::size_t scratch_bytes = 128 * 1024;
using Scratch = std::span<std::byte, scratch_bytes>;

// Grants what the dependencies of its instructions allow, and checks what arrives. Where it goes is the derived
// class's.
class ReceiveChannel {
 public:
  virtual ~ReceiveChannel() = default;
  ReceiveChannel(ReceiveChannel const&) = delete;
  ReceiveChannel& operator=(ReceiveChannel const&) = delete;

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] std::uint64_t run() const { return state_.run; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  // The inlet that carries the channel; null until the peer's open was accepted and after it was lost.
  Inlet* inlet = nullptr;
  std::uint64_t inlet_number = 0;  // of the one that carries it, or did
  bool is_queued = false;          // with the inlet

  // As newly made, for another run of the same. None that is carried, and none that reads in place.
  void begin();

  // The peer agrees. It lends this memory, where its messages are to be read; null: they come in data frames.
  virtual void opened(Borrowed lent);
  // The peer agrees, and is to be told later how its messages are taken: until then it sends none.
  void holds_open() { takes_no_data("its open was not answered yet"); }
  // The peer's GPU may write the messages where they are to lie, as they lie in one arena and are changed by nothing.
  [[nodiscard]] virtual bool may_be_written() const { return false; }
  [[nodiscard]] virtual bool is_written() const { return false; }
  // Instead of opened(): it does.
  virtual void opened_to_writes() {}
  // So far it has. Errors: LinkErrc::bad_frame with what is wrong.
  [[nodiscard]] virtual Status wrote(links::FrameHeader const& header);
  [[nodiscard]] virtual bool reads_in_place() const { return false; }
  [[nodiscard]] bool is_opened() const { return opened_; }
  [[nodiscard]] bool finished() const { return opened_ && unreceived_ == 0; }
  // It is the peer's turn: to open the run, or to send what it may.
  [[nodiscard]] bool waits_for_peer() const;
  // Of all eager messages together.
  [[nodiscard]] std::uint64_t stage_bytes() const { return stage_bytes_; }
  [[nodiscard]] std::string where() const;  // "receiving message 2 of 6 (step 7 of 12)": the first that is incomplete

  // Message m's instruction may have become able to go on.
  virtual void wake(std::uint32_t message) = 0;

  // Words for the peer: grants, and what was read.
  [[nodiscard]] bool has_word() const { return !queue_.empty() || has_read_; }
  bool next_word(links::FrameHeader& header);

  // Where the next bytes of a message lie. Errors: LinkErrc::bad_frame with what is wrong.
  [[nodiscard]] virtual Status lies(links::FrameHeader const& header, links::Place const& place);

  // A data frame of this run, then its payload: space() and filled() until header.length bytes have come. One frame at
  // a time. Errors: LinkErrc::bad_frame with what is wrong.
  [[nodiscard]] Status begin_frame(links::FrameHeader const& header, Scratch scratch);
  [[nodiscard]] virtual std::span<std::byte> space() = 0;
  virtual void filled(std::size_t bytes) = 0;
  // Instead of space() and filled(), for a payload that lies somewhere already: used at once, but counted only by
  // took(). After withdrawn() the channel takes no more.
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
    std::uint64_t stage_at = 0;  // where an eager message's stage begins: they may come before they can be used
  };
  // instructions[m] receives message m. The state outlives the channel.
  ReceiveChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, std::uint64_t digest);

  void grant(std::uint32_t m, std::uint64_t up_to);
  void takes_no_data(char const* why) { why_no_data_ = why; }
  // So many bytes of the message are in this rank's memory, as its last ones or not.
  void count(std::uint64_t bytes, bool completes_message);
  // While has_read_.
  virtual bool next_read(links::FrameHeader&) { return false; }
  // The frame at hand is one that the channel expects.
  virtual void begun(Scratch scratch) = 0;
  // It is there as a whole.
  void arrived();

  RunState& state_;
  std::vector<Message> messages_;
  // The frame at hand.
  std::uint32_t message_ = 0;
  std::uint32_t frame_bytes_ = 0;
  std::size_t frame_left_ = 0;
  bool has_read_ = false;  // something that the peer does not know of

 private:
  plan::Rank const peer_;
  std::uint64_t const digest_;
  IndexQueue queue_;  // of messages with a grant to send
  std::uint64_t stage_bytes_ = 0;
  std::uint32_t unreceived_ = 0;  // messages
  bool opened_ = false;
  bool is_withdrawn_ = false;
  char const* why_no_data_ = nullptr;
};

}  // namespace chorus::engine
