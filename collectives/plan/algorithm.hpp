// What the author of an algorithm writes: which chunks move in which round, for one rank at a time.
//
// The rules of a round: sends read what was there when the round began; receives and local operations land at its end,
// in the order in which they were emitted. Authors write no dependencies, no message numbers and no in-place variants:
// passes derive them (program.hpp). There is no barrier between rounds when a plan runs.
//
// What an author calls a rank is a position (positions.hpp): a pass names the ranks in the end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/sink.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

using Shape = std::vector<std::uint32_t>;

// A pure description: functions of (spec, rank, round). Lives in a constant table, is never registered.
struct Algorithm {
  std::string_view name;
  std::string_view summary;                   // one line for people: steps and bytes
  Status (*check)(Spec const& spec);          // beyond plan::check(spec)
  std::uint32_t (*chunks)(Spec const& spec);  // C: the vector is cut into this many chunks
  std::uint32_t (*scratch_chunks)(Spec const& spec, Rank rank);
  std::uint32_t (*rounds)(Spec const& spec, Rank rank);
  void (*emit)(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink);  // random access, no state

  bool rooted = false;      // one rank, Spec::root, plays a part of its own also where the operation has no root
  bool uses_arity = false;  // Spec::arity changes the plan

  // Shapes that are worth a look for so many ranks, beside the empty one, which every algorithm takes. Null where
  // Spec::shape must be empty; the algorithm's comment says how it reads one, its check() which ones fit.
  std::vector<Shape> (*shapes)(std::uint32_t ranks) = nullptr;

  // Every message is received into the chunks of the vector from which it was sent (scratch chunk k counts as k mod C).
  // Then the digests of a channel cover which chunks travel. Without effect on all_to_all, where they never match.
  bool same_chunks_on_both_ends = true;

  // Runs only if all chunks have the same size: blocks travel under other numbers than their own.
  bool (*equal_chunks)(Spec const& spec) = nullptr;

  // Every element is reduced at one place, the contributions taken in rank order, one by one: the same bits from all
  // algorithms for which this holds. Null: never.
  bool (*in_worker_order)(Spec const& spec) = nullptr;

  // Instruction for instruction, and in as many rounds, every rank does what the rank before it does, moved on by one
  // (Rotation, rotation.hpp): then a simulation looks at one rank's instructions only. Null: never.
  bool (*rotates)(Spec const& spec) = nullptr;
};

}  // namespace chorus::plan
