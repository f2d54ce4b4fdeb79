// Proof by symbolic execution that the programs of all ranks, as they run, compute the operation.
//
// Checked: every send meets one receive of the same length; no deadlock under rendezvous semantics (nothing is
// buffered); no two unordered instructions of a rank touch a chunk that one of them writes; every output chunk is the
// multiset of contributions that the operation defines, so dropping and double counting are both caught; `final` stands
// exactly where the multiset is complete; wide partial sums are read as such, once, and may be kept part by part
// without a deadlock; and, in place, the same. Matched channels plus race freedom make the result independent of timing
// (a Kahn network), so one execution order is enough.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::verify {

// Up to this many ranks contributions are compared as multisets, above as sums of random 64-bit numbers.
inline constexpr std::uint32_t max_exact_ranks = 64;

struct Report {
  bool ok = false;
  std::string failure;  // empty if ok; otherwise rank, instruction and what is wrong
};

// programs[r] is rank r's; all of one spec.
[[nodiscard]] Report check(std::span<plan::Program const> programs);

// Builds every rank's program of the spec and checks them.
[[nodiscard]] Report check(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::verify
