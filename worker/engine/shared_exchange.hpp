// A program that only exchanges, as mesh does: its steps written down flat, for calls that take a few hundred
// nanoseconds and would spend a good part of them on following steps, operands and pieces from one to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/engine/shared_steps.hpp"

namespace chorus::engine {

// A value. All that is sent is there from the beginning; then all that is received, one message of each peer, is folded
// at once. Every range is in one piece, and none is wide.
struct Exchange {
  struct Place {
    plan::Buffer buffer;
    std::uint64_t at;
  };
  struct Sent {
    Place from;
    std::uint64_t bytes;
    MessageName name;
    std::uint32_t step;  // that sends it
  };
  struct Operand {
    std::optional<std::uint32_t> channel;  // whose message it is; otherwise:
    Place local;
  };

  std::vector<Sent> sent;
  std::uint32_t instructions_that_send = 0;
  std::vector<Operand> operands;
  std::vector<Place> destinations;
  std::uint64_t bytes = 0;         // of each of them
  bool is_final = false;           // see Step
  std::uint32_t instructions = 0;  // all

  [[nodiscard]] bool computes() const { return operands.size() > 1 || is_final; }
};

// Nothing if the steps are more than that.
[[nodiscard]] std::optional<Exchange> to_exchange(std::vector<Step> const& steps);

}  // namespace chorus::engine
