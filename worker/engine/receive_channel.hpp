// The messages of one run from one peer to this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/engine/index_queue.hpp"
#include "worker/engine/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class Inlet;

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
  bool is_queued = false;  // with the inlet

  void opened() { opened_ = true; }
  [[nodiscard]] bool is_opened() const { return opened_; }
  [[nodiscard]] bool finished() const { return opened_ && unreceived_ == 0; }
  // It is the peer's turn: to open the run, or to send what it may.
  [[nodiscard]] bool waits_for_peer() const;
  [[nodiscard]] std::string where() const;  // "receiving message 2 of 6 (step 7 of 12)": the first that is incomplete

  // Message m's instruction may have become able to go on.
  virtual void wake(std::uint32_t message) = 0;

  [[nodiscard]] bool has_grant() const { return !queue_.empty(); }
  bool next_grant(links::FrameHeader& header);

  // A data frame of this run, then its payload: space() and filled() until header.length bytes have come. One frame at
  // a time. Errors: LinkErrc::bad_frame with what is wrong.
  [[nodiscard]] Status begin(links::FrameHeader const& header, Scratch scratch);
  [[nodiscard]] virtual std::span<std::byte> space() = 0;
  virtual void filled(std::size_t bytes) = 0;
  // Instead of space() and filled(), for a payload that lies somewhere already: used at once, but counted only by
  // took(). After withdrawn() the channel takes no more.
  virtual void take(std::span<std::byte const> payload) = 0;
  virtual void took() = 0;
  void withdrawn() { is_withdrawn_ = true; }
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

  // Of all eager messages together.
  [[nodiscard]] std::uint64_t stage_bytes() const { return stage_bytes_; }
  void grant(std::uint32_t m, std::uint64_t up_to);
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

 private:
  plan::Rank const peer_;
  std::uint64_t const digest_;
  IndexQueue queue_;  // of messages with a grant to send
  std::uint64_t stage_bytes_ = 0;
  std::uint32_t unreceived_ = 0;  // messages
  bool opened_ = false;
  bool is_withdrawn_ = false;
};

}  // namespace chorus::engine
