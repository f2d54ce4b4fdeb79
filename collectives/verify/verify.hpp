// Proof by symbolic execution that the programs of all ranks, as they run, compute the operation. Also of programs in
// place. The proof shows:
// - Every send has one receive of the same length.
// - There is no deadlock under rendezvous semantics, in which no message is buffered.
// - No two unordered instructions of a rank access a chunk that one of them writes.
// - Every output chunk is the multiset of contributions that the operation defines: none is missing or counted twice.
// - An instruction is final if and only if it completes the multiset.
// - Wide partial sums are read as such, once, and may be kept part by part without a deadlock.
//
// Matched channels and freedom from races make the result independent of timing (a Kahn network), so one order of
// execution is enough.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::verify {

// Plans of at most so many ranks compare contributions as multisets, larger ones as sums of random 64-bit numbers.
inline constexpr std::uint32_t max_exact_ranks = 64;

struct Report {
  bool ok = false;
  std::string failure;  // empty if ok; otherwise rank, instruction and reason
};

// Checks the programs of all ranks of one spec; programs[r] is that of rank r.
[[nodiscard]] Report check(std::span<plan::Program const> programs);

// Builds the programs of all ranks and checks them. A spec that cannot be built is a failure.
[[nodiscard]] Report check(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::verify
