// Vector halving and doubling in blocks of a power of two ranks, joined for any p: what halving_doubling and swing have
// in common.
//
// p is a sum of different powers of two: 13 ranks are blocks of 8, 4 and 1, larger blocks first. Every block
// reduce-scatters among its own by halving: b ranks, log b steps, and each holds 1/b of the vector. Then the smallest
// block gives what it has to the next larger one, which adds it and gives that to the next. The largest finishes the
// sums and hands them back down the same way, and every block all-gathers by doubling. Where a block is 2^k times as
// large as the next, a rank of the smaller talks to 2^k of the larger one, one after the other.
//
// Steps: 2 log b1 + 2 sum (b_i / b_(i+1)) for blocks b1 > b2 > ... Bytes: 2 (b-1)/b n in a block of b, and 2/b n
// between it and the next larger one. For a power of two that is 2 log p steps and 2 (p-1)/p n, the least possible.
//
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005 ("binary blocks"), and Gloo.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Who halves with whom, in a block of 2^steps members: pure functions of a member's number in it.
struct Pairing {
  // An involution for every step < steps.
  std::uint32_t (*partner)(std::uint32_t member, std::uint32_t step, std::uint32_t steps);

  // The part of the vector, of 2^steps, that is the member's after halving. Partners of a step agree in as many leading
  // bits of theirs as there were steps before, and differ in the next: so what they exchange is one range of chunks.
  std::uint32_t (*part)(std::uint32_t member, std::uint32_t steps);
  std::uint32_t (*member)(std::uint32_t part, std::uint32_t steps);  // its inverse
};

// The lowest `count` bits of `number`, turned round.
[[nodiscard]] std::uint32_t reversed_bits(std::uint32_t number, std::uint32_t count);

// For Algorithm::chunks and Algorithm::rounds.
[[nodiscard]] std::uint32_t chunks_of_blocks(plan::Spec const& spec);
[[nodiscard]] std::uint32_t rounds_of_blocks(plan::Spec const& spec, plan::Rank rank);

void emit_blocks(Pairing const& pairing, plan::Spec const& spec, plan::Rank rank, std::uint32_t round,
                 plan::Sink& sink);

}  // namespace chorus::algorithms
