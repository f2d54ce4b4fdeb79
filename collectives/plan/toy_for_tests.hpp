// A trivial algorithm for tests of the code around algorithms: in each of `arity` rounds every rank sends one of two
// chunks to the next rank.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::plan {

inline Status toy_check(Spec const&) { return ok(); }
inline std::uint32_t toy_chunks(Spec const&) { return 2; }
inline std::uint32_t toy_scratch_chunks(Spec const&, Rank) { return 0; }
inline std::uint32_t toy_rounds(Spec const& spec, Rank) { return spec.arity; }
inline void toy_emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  sink.recv((rank + spec.ranks - 1) % spec.ranks, output(round % 2));
  sink.send((rank + 1) % spec.ranks, input(round % 2));
}

inline constexpr Algorithm toy{
    .name = "toy",
    .summary = "passes chunks on",
    .check = toy_check,
    .chunks = toy_chunks,
    .scratch_chunks = toy_scratch_chunks,
    .rounds = toy_rounds,
    .emit = toy_emit,
};

inline Spec toy_spec(std::uint32_t rounds, Rank root = 0) {
  return {.algorithm = "toy", .ranks = 4, .root = root, .arity = rounds};
}

}  // namespace chorus::plan
