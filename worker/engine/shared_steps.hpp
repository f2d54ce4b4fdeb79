// A program as a caller's own thread runs it over shared memory.
//
// The engine's scoreboard follows every segment of every instruction, since it never knows which link moves next. Where
// the peers' memory lies at hand that is more work than the work itself: here the program becomes a list of steps that
// are run in their order, and what belongs together is one step. A chain of receives that add to one range, the copies
// of its result, and the messages that send it on become one pass over all of their memory, in which each element is
// read once and written once: that is the least traffic there can be.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/plan/program.hpp"
#include "worker/engine/addresses.hpp"

namespace chorus::engine {

// Contiguous bytes of a buffer.
struct Piece {
  plan::Buffer buffer = plan::Buffer::input;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(Piece const&, Piece const&) = default;
};

struct Range {
  std::vector<Piece> pieces;  // not empty ones
  bool wide = false;          // of f16 and bf16: the partial sums in f32, beside the buffer
};

// The n-th message to or from the peer of a channel of the program.
struct MessageName {
  std::uint32_t channel = 0;
  std::uint32_t number = 0;
  friend bool operator==(MessageName const&, MessageName const&) = default;
};

struct Operand {
  std::optional<MessageName> message;  // received; otherwise:
  Range local;
};

// destinations = operands[0] (op) operands[1] (op) ...; then what they hold is sent. A step without destinations sends
// its one operand.
struct Step {
  std::uint64_t bytes = 0;
  std::vector<Operand> operands;
  std::vector<Range> destinations;
  std::vector<MessageName> sends;
  std::vector<MessageName> overwrites;  // own messages that must have been sent, and read where they lie, before
  std::vector<std::uint32_t> after;     // steps whose results must be there before
  bool is_final = false;                // completes a reduction
  // The peer may put the message where it belongs, by itself, once it has read its first `land_after` messages from
  // here (the last of them element for element): nothing else touches that range before.
  bool may_land = false;
  std::uint32_t land_after = 0;
  std::uint32_t steps = 1;  // instructions in it
};

// Instructions are not joined where that would change what a rank waits for in a way that the program's dependencies
// forbid.
[[nodiscard]] std::vector<Step> to_steps(plan::Program const& program, Addresses const& addresses, Dtype dtype);

// Of those that are sent or received, in bytes.
[[nodiscard]] std::uint64_t largest_message(std::vector<Step> const& steps);

// Whether each range of a step is in one piece and none is wide, so that nothing of it is ever half done if its
// messages arrive whole. Empty steps are not meant.
[[nodiscard]] bool is_in_one_piece(Step const& step);
// By step: the same, of those that do not only send.
[[nodiscard]] std::vector<bool> folds_in_one_piece(std::vector<Step> const& steps);

}  // namespace chorus::engine
