// The receiving end of a link from one peer: messages come in, grants and failure notices go out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/early_messages.hpp"
#include "worker/engine/transport/early_runs.hpp"
#include "worker/engine/transport/lent_opens.hpp"
#include "worker/engine/transport/once_queue.hpp"
#include "worker/engine/transport/refusals.hpp"

namespace chorus::engine {

class RunOnLinks;

class ReceiveConnection final : public Connection {
 public:
  ReceiveConnection(ConnectionOwner& owner, Identity peer, std::uint64_t number);

  // Number among all receive connections of the engine; never reused.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // This rank starts the run: answers the open that waits here, and delivers the data that came with it.
  void start(RunOnLinks& run);
  // Refuses the whole link: tells the peer why and ends it.
  void refuse_link(EngineErrc code, std::string why);
  // The run has failed here: if its open waits here, the peer is told.
  void forget(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice);
  void forget(std::uint64_t run, Failure const& why);  // the same, for any epoch and token
  // What waits here for a start or a receive of this rank.
  [[nodiscard]] EarlyRuns& early_runs() { return early_runs_; }
  [[nodiscard]] EarlyMessages& early_messages() { return early_messages_; }
  // Takes the next message into `to` and returns the length of its content, if it arrives within so many polls, has the
  // header and head of `awaited`, except for the length, and fits.
  [[nodiscard]] std::optional<std::uint64_t> take(links::MessageFrame const& awaited, std::span<std::byte> to,
                                                  unsigned polls);
  // Refuses the opens and messages of a retired epoch that wait here.
  void retire(Retired const& epoch);
  // The run has ended; none of its memory is used any more.
  void remove(ReceiveChannel& channel);
  // The channel has control frames for the peer.
  void schedule(ReceiveChannel& channel);
  // Answers an open of the run that was kept back, if that can be decided now.
  void decide(std::uint64_t run);

  bool next_frame(links::OutFrame& frame) override;
  void frame_sent(links::FrameHeader const& header) override;
  [[nodiscard]] bool awaits_coalesced_frame(links::FrameHeader const& open) const override;
  bool coalesced_frame_arrives(links::CoalescedFrame const& coalesced_frame) override;
  Status frame_arrives(links::FrameHeader const& header) override;
  void frame_is_corrupt(Error const& why) override;
  std::span<std::byte> payload_space() override;
  Status payload_arrived(std::size_t bytes) override;
  void payload_at(std::span<std::byte const> payload) override;
  void payload_withdrawn() override;

 private:
  enum class Sink : std::uint8_t { control, channel, early, message, nowhere };

  void lost(Error const& why) override;
  Status open_arrived();
  Status answer_open(RunOnLinks& run, links::DecodedOpen const& decoded, std::uint32_t epoch);
  void was_opened(RunOnLinks& run, ReceiveChannel& channel);
  // The memory of a GPU: `take`, which returns a Status, gives the frame to the channel of its run.
  template <class Take>
  Status take_by_channel(links::FrameHeader const& header, Take const& take);
  Status place_arrived();
  Status data_arrives(links::FrameHeader const& header);
  // True if the payload of the current frame is of no use, perhaps since it began to arrive.
  [[nodiscard]] bool is_dropped() const;
  void abort_arrived(links::FailureNotice const& failure_notice);
  [[nodiscard]] ReceiveChannel* find(std::uint64_t run);
  // Frames of this run may still arrive, and are dropped.
  [[nodiscard]] bool is_over(std::uint64_t run) const;

  std::uint64_t const number_;
  std::vector<ReceiveChannel*> channels_;
  OnceQueue<ReceiveChannel> scheduled_;
  Refusals refusals_{*this};
  EarlyRuns early_runs_{owner_, *this, refusals_};
  EarlyMessages early_messages_{owner_, *this};
  LentOpens lent_opens_{owner_, *this};

  // Processing a smaller payload in place is too short to be timed.
  static constexpr std::size_t timed_bytes = 16384;

  // State of the current frame.
  Sink sink_ = Sink::nowhere;
  std::size_t left_ = 0;
  ReceiveChannel* channel_ = nullptr;
  links::FrameHeader message_;  // of the small message that is arriving
  bool timing_ = false;         // the payload is large enough to be timed
  bool taken_ = false;          // the payload was used in place
  std::chrono::steady_clock::time_point since_;
  struct alignas(64) Memory : std::array<std::byte, scratch_bytes> {};
  std::unique_ptr<Memory> scratch_;
};

}  // namespace chorus::engine
