// The messages of one run from one peer to this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// Grants what the dependencies of its instructions allow, and puts what arrives where it belongs: a recv straight into
// its destination, what is reduced or widened through the scratch memory, and eager bytes that came too early into a
// stage.
class ReceiveChannel {
 public:
  // instructions[m] receives message m. The state outlives the channel.
  ReceiveChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, std::uint64_t digest);

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
  void wake(std::uint32_t message);

  [[nodiscard]] bool has_grant() const { return !queue_.empty(); }
  bool next_grant(links::FrameHeader& header);

  // A data frame of this run, then its payload: space() and filled() until header.length bytes have come. One frame at
  // a time. Errors: LinkErrc::bad_frame with what is wrong.
  [[nodiscard]] Status begin(links::FrameHeader const& header, Scratch scratch);
  [[nodiscard]] std::span<std::byte> space();
  void filled(std::size_t bytes);
  // Instead of space() and filled(), for a payload that lies somewhere already: used at once, but counted only by
  // took(). After withdrawn() the channel takes no more.
  void take(std::span<std::byte const> payload);
  void took();
  void withdrawn() { is_withdrawn_ = true; }

 private:
  enum class Way : std::uint8_t { direct, reduce, stage };
  struct Message {
    std::uint32_t instruction = 0;
    bool eager = false;
    bool queued = false;
    std::uint64_t granted = 0;   // bytes that may arrive
    std::uint64_t arrived = 0;   // bytes of whole frames
    std::uint64_t stage_at = 0;  // where an eager message's stage begins
  };
  void end_frame();
  void take_from_stage(Message& message);

  RunState& state_;
  plan::Rank const peer_;
  std::uint64_t const digest_;
  std::vector<Message> messages_;
  IndexQueue queue_;  // of messages with a grant to send
  std::unique_ptr<std::byte[]> stage_;
  std::uint64_t stage_bytes_ = 0;
  std::uint32_t unreceived_ = 0;  // messages
  bool opened_ = false;
  bool is_withdrawn_ = false;

  // The frame at hand.
  Way way_ = Way::direct;
  std::uint32_t message_ = 0;
  std::uint32_t frame_bytes_ = 0;
  std::size_t frame_left_ = 0;
  std::byte* scratch_ = nullptr;
  std::size_t in_scratch_ = 0;
};

}  // namespace chorus::engine
