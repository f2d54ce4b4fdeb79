// The sending end of a link to one peer: messages of runs go out, grants and failure notices come back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/channels/loan.hpp"
#include "worker/engine/channels/send_channel.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/once_queue.hpp"
#include "worker/engine/transport/refusals.hpp"
#include "worker/links/frames/lending.hpp"

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

class RunOnLinks;

// Exists from the moment its link is dialed; channels may be added at once. Runs take turns frame by frame.
class SendConnection final : public Connection {
 public:
  SendConnection(ConnectionOwner& owner, Identity peer, std::string url)
      : Connection(owner, std::move(peer)), url_(std::move(url)) {}

  [[nodiscard]] std::string const& url() const { return url_; }
  // True on a connection that the peer has dialed; such a connection has no URL.
  [[nodiscard]] bool is_accepted() const { return url_.empty(); }
  // When the dial that is under way is given up.
  std::chrono::steady_clock::time_point dialed_until;
  // The run that waits for the link longest; null: none does.
  [[nodiscard]] RunOnLinks* last_to_wait();

  // The proof with which an open of a run on this GPU lends its memory; empty unless the link allows lending and the
  // peer has not refused this GPU recently.
  [[nodiscard]] std::optional<std::uint64_t> lends(devices::GpuUnit const& gpu);
  void could_not_lend(Error const& why);

  void add(SendChannel& channel);
  // The run has ended; none of its memory is used any more.
  void remove(SendChannel& channel);
  // Sends a coalesced frame at once if nothing is in its way. If taken in part, the caller adds the channel, with its
  // data frame in flight; if taken whole, the caller calls sent().
  [[nodiscard]] links::Taken send(links::CoalescedFrame const& coalesced_frame,
                                  std::chrono::steady_clock::time_point began);
  void sent(links::CoalescedFrame const& coalesced_frame, std::chrono::steady_clock::duration took);
  // Sends a small message at once. False, and nothing is sent, if something is in its way.
  [[nodiscard]] bool send(links::MessageFrame const& message);
  // The channel has frames to send.
  void schedule(SendChannel& channel);

  bool next_frame(links::OutFrame& frame) override;
  void frame_sent(links::FrameHeader const& header) override;
  Status frame_arrives(links::FrameHeader const& header) override;
  void frame_is_corrupt(Error const& why) override;
  std::span<std::byte> payload_space() override { return collecting_space(); }
  Status payload_arrived(std::size_t bytes) override;
  void payload_at(std::span<std::byte const> payload) override;
  void payload_withdrawn() override {}  // failure notices never are

 private:
  void lost(Error const& why) override;
  [[nodiscard]] SendChannel* find(std::uint64_t run);
  Status failure_notice_arrived();
  Status borrow_arrived();
  Status read_arrived(links::FrameHeader const& header);
  Status room_arrived();
  Status returned_arrived(links::FrameHeader const& header);
  // Handles a control frame for a run that has no channel here.
  [[nodiscard]] Status belated(links::FrameHeader const& header) const;

  std::string const url_;
  std::vector<SendChannel*> channels_;
  OnceQueue<SendChannel> scheduled_;
  std::size_t in_flight_ = 0;  // data frames that the link has
  std::chrono::steady_clock::time_point busy_since_;
  std::vector<std::shared_ptr<Loan>> loans_;  // of runs that have ended
  DroppedRuns given_up_;
  struct Unwanted {
    devices::GpuUnit const* gpu = nullptr;
    std::chrono::steady_clock::time_point until;
  };
  std::vector<Unwanted> unwanted_;  // GPUs whose memory the peer could not map
};

}  // namespace chorus::engine
