// A program that only exchanges, like mesh, as a flat list: calls of a few hundred nanoseconds would spend much of that
// on following steps, operands and pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/engine/shm/calls/shared_steps.hpp"

namespace chorus::engine {

// A value. All sent messages are ready at the start; then one message from each peer is received, and all are folded at
// once. Every range is in one piece, and none is wide.
struct Exchange {
  struct Place {
    plan::Buffer buffer;
    std::uint64_t at;
  };
  struct Sent {
    Place from;
    std::uint64_t bytes;
    MessageName name;
    std::uint32_t step;  // the step that sends it
  };
  struct Operand {
    std::optional<std::uint32_t> channel;  // channel of the received message; empty: `local` is used
    Place local;
    bool is_partial = false;  // see engine::Operand
  };

  std::vector<Sent> sent;
  std::uint32_t instructions_that_send = 0;
  std::vector<Operand> operands;
  std::vector<Place> destinations;
  std::uint64_t bytes = 0;         // of each operand and destination
  bool is_final = false;           // see Step
  std::uint32_t instructions = 0;  // total number

  [[nodiscard]] bool computes() const { return operands.size() > 1 || is_final; }
};

// Empty if the steps do more than that.
[[nodiscard]] std::optional<Exchange> to_exchange(std::vector<Step> const& steps);

}  // namespace chorus::engine
