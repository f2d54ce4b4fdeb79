// State that the parts of a run share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "worker/engine/program/scoreboard.hpp"
#include "worker/links/frames/frame.hpp"

namespace chorus::engine {

// Owned by the run; used by the thread that does the work of the data plane.
struct RunState {
  std::uint64_t run = 0;
  std::uint32_t epoch = 0;
  std::uint64_t segment_bytes = 0;          // a multiple of the element size
  std::uint32_t window = 0;                 // data frames of a channel that are handed to a link and not yet sent
  std::uint64_t eager_bytes = 0;            // limit of the eager messages of a channel
  std::optional<links::Envelope> envelope;  // of a message between two members
  plan::Program const& program;
  std::size_t element_bytes = 1;
  Scoreboard board;
  std::uint64_t bytes_sent = 0;  // payload
  std::uint64_t bytes_received = 0;
};

// Decides which messages of a channel are sent without a grant. Messages are taken in order. Each one that still fits
// costs its bytes and a fixed amount per chunk, which stands for what the receiver spends on a frame. Both ends compute
// the same answer from the plan alone.
class EagerBudget {
 public:
  static constexpr std::uint64_t chunk_bytes = 64;

  explicit EagerBudget(std::uint64_t bytes) : left_(bytes) {}

  [[nodiscard]] bool admits(std::uint64_t message_bytes, std::uint32_t chunks) {
    auto const overhead = chunk_bytes * chunks;
    if (message_bytes > left_ || overhead > left_ - message_bytes) return false;
    left_ -= message_bytes + overhead;
    return true;
  }

  // Returns the bytes of the receiver's memory that hold an eager message until its instruction is ready.
  [[nodiscard]] static std::uint64_t stage_bytes(std::uint64_t message_bytes) { return (message_bytes + 15) / 16 * 16; }

 private:
  std::uint64_t left_;
};

}  // namespace chorus::engine
