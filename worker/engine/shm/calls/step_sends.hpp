// What the steps of a call send, and where it is written: into the peers' destinations, in one piece or several.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/shm/calls/call_buffers.hpp"
#include "worker/engine/shm/calls/call_channels.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/shm/lanes/peer_pieces.hpp"

namespace chorus::engine {

// Of one kind of call, used for one call after another. One thread at a time.
class StepSends {
 public:
  // All outlive the object.
  StepSends(std::vector<Step> const& steps, CallBuffers const& buffers, CallChannels& channels);

  // Begins a call.
  void rewind();
  // The next message of a step has been sent by somebody else.
  void skip(std::uint32_t step) { ++sendings_[step].done; }

  // Tells the peers where they may write messages of this call. True if any was told.
  [[nodiscard]] bool offer_landings();

  // The place where a peer wants a message of a step to be written, if it has named one.
  struct Landing {
    bool lands = false;
    PeerPieces left;
  };
  // Looks for the landings of a step that is about to start.
  void find_landings(std::uint32_t step);
  [[nodiscard]] std::span<Landing> landings(std::uint32_t step) { return sendings_[step].landings; }

  // Sends what is possible now of the messages of a step whose result is complete.
  [[nodiscard]] CallTurn send(std::uint32_t step);
  // Messages of the step that are not sent yet.
  [[nodiscard]] std::span<MessageName const> unsent(std::uint32_t step) const {
    return std::span(steps_[step].sends).subspan(sendings_[step].done);
  }

 private:
  struct Sending {
    std::uint32_t done = 0;         // messages
    std::uint64_t sent = 0;         // bytes of the current message, 0 between messages
    Cursor cursor;                  // in the range that is sent
    std::vector<Landing> landings;  // by message
  };
  [[nodiscard]] bool offer_landing(Step const& step);
  [[nodiscard]] std::uint64_t send_some(SharedLane& lane, Range const& range, Cursor& cursor) const;

  std::vector<Step> const& steps_;
  CallBuffers const& buffers_;
  CallChannels& channels_;
  std::vector<Sending> sendings_;  // by step
};

}  // namespace chorus::engine
