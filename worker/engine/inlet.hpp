// The receiving end of a link from one peer: messages come in, grants and verdicts go back. Also keeps what arrives for
// runs that this rank has not started yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/engine/connection.hpp"
#include "worker/engine/once_queue.hpp"
#include "worker/engine/receive_channel.hpp"
#include "worker/engine/retired.hpp"

namespace chorus::engine {

class Run;

class Inlet final : public Connection {
 public:
  Inlet(Engine& engine, Identity peer, std::uint64_t number);

  // Of this one among all of the engine, ever.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // This rank starts the run: an open that waits here is answered, and what came with it is delivered.
  void start(Run& run);
  // The whole link is not wanted: says so and ends it.
  void refuse_link(EngineErrc code, std::string why);
  // The run has failed here: if an open waits for it, the peer is told.
  void forget(std::uint64_t run, std::uint32_t epoch, links::Verdict const& verdict);
  void forget(std::uint64_t run, Failure const& why);  // ... whoever has opened it
  // An open of this run waits here.
  [[nodiscard]] bool has_early(std::uint64_t run) const { return find_early(run) != early_.size(); }
  // An epoch is over: opens of its runs that wait here are refused.
  void retire(Retired const& epoch);
  // The run has ended; none of its memory is used any more.
  void remove(ReceiveChannel& channel);
  // The channel has words for the peer.
  void schedule(ReceiveChannel& channel);
  // Answers what was left undecided of the run, if that can be decided now.
  void decide(std::uint64_t run);

  bool next_frame(links::OutFrame& frame) override;
  void frame_sent(links::FrameHeader const& header) override;
  [[nodiscard]] bool awaits_parcel(links::FrameHeader const& open) const override;
  bool parcel_arrives(links::Parcel const& parcel) override;
  Status frame_arrives(links::FrameHeader const& header) override;
  void frame_is_corrupt(Error const& why) override;
  std::span<std::byte> payload_space() override;
  Status payload_arrived(std::size_t bytes) override;
  void payload_at(std::span<std::byte const> payload) override;
  void payload_withdrawn() override;

 private:
  // A run of the peer's that waits for this rank's own start.
  struct Early {
    std::uint64_t run = 0;
    std::uint32_t epoch = 0;
    links::Open open;
    std::string description;
    std::optional<links::Lend> lend;
    std::vector<std::byte> frames;      // header, payload, padding to 16 bytes; again and again
    ReceiveChannel* channel = nullptr;  // once the run has started: wants the frame that is arriving
  };
  enum class Sink : std::uint8_t { control, channel, early, nowhere };

  void lost(Error const& why) override;
  Status bad(std::string why);
  Status open_arrived();
  Status answer_open(Run& run, links::DecodedOpen const& decoded, std::uint32_t epoch);
  Status answer_lend(Run& run, ReceiveChannel& channel, links::Lend const& lend);
  void was_opened(Run& run, ReceiveChannel& channel);
  Status place_arrived();
  Status written_arrived(links::FrameHeader const& header);
  Status keep_early(links::DecodedOpen const& decoded);
  Status data_arrives(links::FrameHeader const& header);
  Status data_arrives_early(Early& early, links::FrameHeader const& header);
  Status early_frame_ended();
  Status deliver(ReceiveChannel& channel, std::span<std::byte const> frame);
  Status replay(Early& early, ReceiveChannel& channel);
  void abort_arrived(links::Verdict const& verdict);
  void refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why);
  [[nodiscard]] ReceiveChannel* find(std::uint64_t run);
  // Frames of this run are still on their way, and of no use.
  [[nodiscard]] bool is_over(std::uint64_t run) const;
  [[nodiscard]] std::size_t find_early(std::uint64_t run) const;  // early_.size() if there is none
  void forget_early(std::size_t index);

  std::uint64_t const number_;
  std::vector<ReceiveChannel*> channels_;
  // Those of which it is not known yet how their messages are taken.
  struct Undecided {
    ReceiveChannel* channel = nullptr;
    links::Lend lend;
  };
  std::vector<Undecided> undecided_;
  OnceQueue<ReceiveChannel> scheduled_;
  std::vector<std::unique_ptr<Early>> early_;
  std::vector<std::uint64_t> refused_;  // runs whose opens were refused: their data is dropped; the latest few

  // The frame at hand.
  Sink sink_ = Sink::nowhere;
  std::size_t left_ = 0;
  ReceiveChannel* channel_ = nullptr;
  Early* arriving_early_ = nullptr;
  std::size_t early_at_ = 0;  // where the frame at hand begins in Early::frames
  bool timing_ = false;       // the payload takes a while
  bool taken_ = false;        // the payload was used where it lay
  std::chrono::steady_clock::time_point since_;
  struct alignas(64) Memory : std::array<std::byte, scratch_bytes> {};
  std::unique_ptr<Memory> scratch_;
  // For frames that waited here: a run may start while a frame of another one lies half in scratch_.
  std::unique_ptr<Memory> replay_scratch_;
};

}  // namespace chorus::engine
