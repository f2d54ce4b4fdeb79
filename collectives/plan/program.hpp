// One rank's share of a plan after all passes: what the engine runs and the verifier proves. Immutable once built;
// shared between runs by std::shared_ptr<Program const>, from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"
#include "collectives/plan/instruction.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

// `instruction` must have finished before the dependent one may start: wholly, or, when both name the same range
// (segmentwise), element for element, so that segments flow through without waiting for the rest. That holds in both
// directions of the data: a receive may write segment s of a range as soon as the send before it has left segment s.
struct Dependency {
  std::uint32_t instruction;
  bool segmentwise;
  friend bool operator==(Dependency const&, Dependency const&) = default;
};

// The messages between this rank and one peer. Both ends compute the digests from their own programs; a link is used
// for a run only if the sender's `sends` equals the receiver's `receives`, so generators that disagree never exchange a
// byte.
struct Channel {
  Rank peer = 0;
  std::uint32_t sends = 0;        // number of messages to the peer
  std::uint32_t receives = 0;     // number of messages from the peer
  std::uint64_t send_digest = 0;  // over number, lane, length and (where both ends know them) chunks of every message
  std::uint64_t receive_digest = 0;
  friend bool operator==(Channel const&, Channel const&) = default;
};

struct Program {
  Spec spec;
  Rank rank = 0;
  std::uint32_t chunks = 1;
  std::uint32_t scratch_chunks = 0;  // chunk k as large as chunk k mod C
  bool rooted = false;               // one rank, Spec::root, plays a part of its own
  bool equal_chunks = false;         // see Algorithm
  ChunkRange input;                  // what the two buffers hold: see memory() in holding.hpp
  ChunkRange output;
  std::vector<Instruction> instructions;        // in round order; an instruction depends only on earlier ones
  std::vector<std::uint32_t> round_begin;       // index of each round's first instruction, and one past the last
  std::vector<Dependency> dependencies;         // all lists, one after the other
  std::vector<std::uint32_t> dependency_begin;  // list of instruction i: [dependency_begin[i], dependency_begin[i + 1])
  std::vector<Channel> channels;                // sorted by peer

  [[nodiscard]] std::span<Dependency const> dependencies_of(std::size_t instruction) const {
    return std::span(dependencies)
        .subspan(dependency_begin[instruction], dependency_begin[instruction + 1] - dependency_begin[instruction]);
  }
  [[nodiscard]] Channel const* channel(Rank peer) const;  // null where the plan does not talk to this peer
  [[nodiscard]] std::size_t memory_bytes() const;
  friend bool operator==(Program const&, Program const&) = default;
};

// Whether the chunks that `instruction` names in this buffer, from `chunk` on, exist there.
[[nodiscard]] bool in_bounds(Program const& program, Buffer buffer, std::uint32_t chunk,
                             Instruction const& instruction);

// Generates the rounds and runs the passes: unify in-place buffers, order each round (reads before writes), number the
// messages, derive the dependencies, widen and mark partial sums, digest the channels, name the ranks (passes.hpp).
// Errors: PlanErrc. Allocates only this rank's share.
[[nodiscard]] Result<Program> build(Algorithm const& algorithm, Spec const& spec, Rank rank);

}  // namespace chorus::plan
