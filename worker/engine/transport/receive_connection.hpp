// The receiving end of a link from one peer: messages come in, grants and failure notices go out. Also keeps what
// arrives for runs that this rank has not started yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/once_queue.hpp"

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
  // Refuses the message whose open waits here.
  void refuse_message(std::uint64_t run, Failure const& why);
  // Runs of the epoch's messages whose opens wait here, in the order in which they came.
  [[nodiscard]] std::vector<std::uint64_t> early_messages(std::uint64_t token, std::uint32_t epoch) const;
  // Tells the owner of a message whose open waits here.
  void report_message(std::uint64_t run);
  // Tells the owner of the small messages of the epoch that wait here.
  void report_small_messages(std::uint64_t token, std::uint32_t epoch);
  // Tells the peer that its small messages of the epoch have failed.
  void refuse_small_messages(std::uint64_t token, std::uint32_t epoch, Failure const& why);
  // Takes the next message into `to` and returns the length of its content, if it arrives within so many polls, has the
  // header and head of `awaited`, except for the length, and fits.
  [[nodiscard]] std::optional<std::size_t> take(links::MessageFrame const& awaited, std::span<std::byte> to,
                                                unsigned polls);
  // True if an open of this run waits here.
  [[nodiscard]] bool has_early(std::uint64_t run) const { return find_early(run) != early_.size(); }
  // Refuses the opens of a retired epoch that wait here.
  void retire(Retired const& epoch);
  // The run has ended; none of its memory is used any more.
  void remove(ReceiveChannel& channel);
  // The channel has control frames for the peer.
  void schedule(ReceiveChannel& channel);
  // Answers the run's opens that were kept back, if that can be decided now.
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
  // A run that the peer has opened and this rank has not started.
  struct Early {
    std::uint64_t run = 0;
    std::uint32_t epoch = 0;
    links::Open open;
    std::string description;
    std::optional<links::Lend> lend;
    std::optional<links::Envelope> envelope;
    std::vector<std::byte> frames;      // repeated: header, payload, padding to 16 bytes
    ReceiveChannel* channel = nullptr;  // set if the run starts while a frame for it is arriving
  };
  // A small message of an epoch whose messages this rank has not begun.
  struct EarlyMessage {
    links::FrameHeader header;
    std::vector<std::byte> payload;
  };
  enum class Sink : std::uint8_t { control, channel, early, message, nowhere };

  void lost(Error const& why) override;
  Status bad(std::string why);
  Status open_arrived();
  Status answer_open(RunOnLinks& run, links::DecodedOpen const& decoded, std::uint32_t epoch);
  Status answer_lend(RunOnLinks& run, ReceiveChannel& channel, links::Lend const& lend);
  void was_opened(RunOnLinks& run, ReceiveChannel& channel);
  Status place_arrived();
  Status written_arrived(links::FrameHeader const& header);
  Status keep_early(links::DecodedOpen const& decoded);
  Status data_arrives(links::FrameHeader const& header);
  Status data_arrives_early(Early& early, links::FrameHeader const& header);
  // Bytes stored in early_, and their limit.
  [[nodiscard]] std::uint64_t early_data() const;
  [[nodiscard]] std::uint64_t early_data_max() const;
  void refuse_early(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, bool is_message, std::string why);
  Status early_frame_ended();
  [[nodiscard]] bool report(links::FrameHeader const& header, std::span<std::byte const> payload);
  void message_arrived();
  Status deliver(ReceiveChannel& channel, std::span<std::byte const> frame);
  Status replay(Early& early, ReceiveChannel& channel);
  void abort_arrived(links::FailureNotice const& failure_notice);
  void refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why);
  [[nodiscard]] ReceiveChannel* find(std::uint64_t run);
  // Frames of this run may still arrive, and are dropped.
  [[nodiscard]] bool is_over(std::uint64_t run) const;
  [[nodiscard]] std::size_t find_early(std::uint64_t run) const;  // early_.size(): not found
  void forget_early(std::size_t index);

  std::uint64_t const number_;
  std::vector<ReceiveChannel*> channels_;
  // Channels whose opens are kept back until it is known how their messages are transferred.
  struct Undecided {
    ReceiveChannel* channel = nullptr;
    links::Lend lend;
  };
  std::vector<Undecided> undecided_;
  OnceQueue<ReceiveChannel> scheduled_;
  std::vector<std::unique_ptr<Early>> early_;
  std::vector<EarlyMessage> early_small_;
  std::vector<std::uint64_t> refused_;  // the latest runs whose opens were refused: their data is dropped
  bool has_forgotten_ = false;          // older entries of refused_ were dropped: data of any unknown run may be theirs

  // State of the current frame.
  Sink sink_ = Sink::nowhere;
  std::size_t left_ = 0;
  ReceiveChannel* channel_ = nullptr;
  links::FrameHeader message_;  // of the small message that is arriving
  Early* arriving_early_ = nullptr;
  std::size_t early_at_ = 0;  // where the current frame begins in Early::frames
  bool timing_ = false;       // the payload is large enough to be timed
  bool taken_ = false;        // the payload was used in place
  std::chrono::steady_clock::time_point since_;
  struct alignas(64) Memory : std::array<std::byte, scratch_bytes> {};
  std::unique_ptr<Memory> scratch_;
  // For delivering stored frames: a run may start while half a frame of another run is in scratch_.
  std::unique_ptr<Memory> replay_scratch_;
};

}  // namespace chorus::engine
