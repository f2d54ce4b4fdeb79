// The messages of one run from this rank to one peer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/engine/index_queue.hpp"
#include "worker/engine/run_state.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

class Outlet;

// Frames come out in the order in which their bytes became ready. A message is sent without a grant if it is within the
// eager budget, which both ends compute alike (EagerBudget).
class SendChannel {
 public:
  // instructions[m] sends message m. The state outlives the channel.
  SendChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions, links::Open const& open,
              std::string_view description);

  [[nodiscard]] plan::Rank peer() const { return peer_; }
  [[nodiscard]] std::uint64_t run() const { return state_.run; }

  // The outlet that carries the channel; null before it is attached and after it was lost.
  Outlet* outlet = nullptr;
  bool is_queued = false;  // with the outlet

  // Message m's instruction may have become able to go on.
  void wake(std::uint32_t message);
  // Gives the open frame first. False when nothing can be sent now.
  bool next_frame(links::OutFrame& frame);
  [[nodiscard]] bool has_frame() const { return !open_given_ || (!queue_.empty() && in_flight_ < state_.window); }
  void frame_sent(links::FrameHeader const& header);
  // Errors: LinkErrc::bad_frame for a grant that cannot be.
  [[nodiscard]] Status granted(links::FrameHeader const& header);

  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }  // data frames given to the link and not sent
  [[nodiscard]] bool finished() const { return open_sent_ && unsent_ == 0; }
  // It is the peer's turn: to accept the link, to grant, or to take what was sent.
  [[nodiscard]] bool waits_for_peer() const;
  // "sending message 2 of 6 (step 7 of 12)": the first that is not sent.
  [[nodiscard]] std::string where() const;

 private:
  struct Message {
    std::uint32_t instruction = 0;
    bool eager = false;
    bool queued = false;
    std::uint64_t credit = 0;  // bytes that may be sent
    std::uint64_t issued = 0;  // bytes given to the link
  };
  [[nodiscard]] std::uint64_t sendable(Message const& message) const;

  RunState& state_;
  plan::Rank const peer_;
  std::vector<Message> messages_;
  IndexQueue queue_;  // of messages with sendable bytes
  std::uint32_t in_flight_ = 0;
  std::uint32_t unsent_ = 0;  // messages
  bool open_given_ = false, open_sent_ = false;
  links::OpenBytes open_{};
  std::uint32_t open_bytes_ = 0;
};

}  // namespace chorus::engine
