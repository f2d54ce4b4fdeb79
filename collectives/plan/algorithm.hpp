// Algorithm: the description that the author of an algorithm writes: which chunks move in which round, for one rank at
// a time.
//
// The rules of a round: sends read the values from before the round; receives and local operations take effect at its
// end, in the order in which they were emitted. Authors write no dependencies, no message numbers and no in-place
// variants: passes derive them (program.hpp). There is no barrier between rounds when a plan runs.
//
// The ranks of an author are positions (positions.hpp): the last pass replaces them by ranks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/sink.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

using Shape = std::vector<std::uint32_t>;

// How the contributions to an element are added, as far as averages of equal numbers depend on it
// (docs/explanation/plans.md#averages).
enum class Summation : std::uint8_t {
  any,
  one_by_one,  // a sum begins with one contribution, and each addition adds one more
  in_pairs,    // each addition is of two sums of equally many contributions: sums of equal numbers are exact
};

// Pure functions of spec, rank and round. Algorithms are constants in one table (algorithms/catalogue.hpp); every
// thread may call them.
struct Algorithm {
  std::string_view name;
  std::string_view summary;                   // one line for people: steps and bytes
  Status (*check)(Spec const& spec);          // conditions beyond those of plan::check(spec)
  std::uint32_t (*chunks)(Spec const& spec);  // C: the vector is cut into this many chunks
  std::uint32_t (*scratch_chunks)(Spec const& spec, Rank rank);
  std::uint32_t (*rounds)(Spec const& spec, Rank rank);
  void (*emit)(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink);  // random access, no state

  bool rooted = false;      // Spec::root has a special role even if the operation has no root
  bool uses_arity = false;  // Spec::arity changes the plan

  // Returns the shapes that selection considers for so many ranks, beside the empty one, which every algorithm takes.
  // Null: Spec::shape must be empty. The algorithm's comment explains its shapes, and check() refuses wrong ones.
  std::vector<Shape> (*shapes)(std::uint32_t ranks) = nullptr;

  // Every message is received into the chunks of the vector from which it was sent (scratch chunk k counts as k mod C).
  // Then the digests of a channel cover the numbers of the chunks. No effect on all_to_all, where they never match.
  bool same_chunks_on_both_ends = true;

  // Returns true if the plan needs chunks of equal size, because blocks travel under other numbers. Null: never.
  bool (*equal_chunks)(Spec const& spec) = nullptr;

  // Returns true if every element is reduced at one place, one contribution after the other in rank order. All such
  // algorithms give the same bits. Null: never.
  bool (*in_worker_order)(Spec const& spec) = nullptr;

  // Null: one by one in worker order, otherwise any.
  Summation (*summation)(Spec const& spec) = nullptr;

  // Returns true if every rank has the rounds and instructions of the rank before it, moved on by one rank (Rotation,
  // rotation.hpp). A simulation then needs the instructions of one rank only. Null: never.
  bool (*rotates)(Spec const& spec) = nullptr;

  // Returns the first scratch chunk that holds codes (Program::coded_from). Null: none does.
  std::uint32_t (*coded_from)(Spec const& spec) = nullptr;
};

// Returns how the plans of a spec add. Two or three contributions are always added one by one. Four count as in pairs:
// if three equal numbers are rounded, then to what gives four times the number with the fourth.
[[nodiscard]] Summation summation_of(Algorithm const& algorithm, Spec const& spec);

}  // namespace chorus::plan
