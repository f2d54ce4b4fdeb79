// A program as a list of steps that the caller's own thread runs over shared memory.
//
// The engine's scoreboard follows every segment of every instruction, because any link may move next. With the peers'
// memory at hand this would cost more than the work itself. Here the program is a list of steps, run in their order,
// and related instructions form one step: a chain of receives that add to one range, the copies of the result and the
// messages that send it on become one pass over the memory, in which each element is read once and written once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/plan/program.hpp"
#include "worker/engine/program/addresses.hpp"

namespace chorus::engine {

// Contiguous bytes of a buffer.
struct Piece {
  plan::Buffer buffer = plan::Buffer::input;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(Piece const&, Piece const&) = default;
};

struct Range {
  std::vector<Piece> pieces;  // none is empty
  bool wide = false;          // partial sums in f32 beside a buffer of f16, bf16 or blocks
};

// The n-th message to or from the peer of a channel.
struct MessageName {
  std::uint32_t channel = 0;
  std::uint32_t number = 0;
  friend bool operator==(MessageName const&, MessageName const&) = default;
};

struct Operand {
  std::optional<MessageName> message;  // received message; empty: `local` is used
  Range local;
  bool is_partial = false;  // already a sum, if the step has several operands
};

// destinations = operands[0] (op) operands[1] (op) ...; then the result is sent. A step without destinations sends its
// one operand.
struct Step {
  std::uint64_t bytes = 0;
  std::vector<Operand> operands;
  std::vector<Range> destinations;
  std::vector<MessageName> sends;
  std::vector<MessageName> overwrites;  // own messages that must be sent, and read in place, first
  std::vector<std::uint32_t> after;     // steps whose results are needed first
  bool is_final = false;                // completes a reduction
  // The peer itself may write the message to its destination once it has read its first `land_after` messages from
  // here; of the last of them, each element before its place is written. Nothing else touches that range before.
  bool may_land = false;
  std::uint32_t land_after = 0;
  std::uint32_t steps = 1;  // number of instructions
};

// What could be done now of a call, or of one of its steps.
enum class CallTurn : std::uint8_t { done, moved, waits, failed };

// Joins instructions unless a rank would then wait for something that the program's dependencies forbid.
[[nodiscard]] std::vector<Step> to_steps(plan::Program const& program, Addresses const& addresses, Dtype dtype);

// Size of the largest message sent or received, in bytes.
[[nodiscard]] std::uint64_t largest_message(std::vector<Step> const& steps);

// True if each range of the step is in one piece and none is wide: if its messages arrive whole, the step is never half
// done. Not for empty steps.
[[nodiscard]] bool is_in_one_piece(Step const& step);
// By step: is_in_one_piece(), and the step does more than send.
[[nodiscard]] std::vector<bool> folds_in_one_piece(std::vector<Step> const& steps);

}  // namespace chorus::engine
