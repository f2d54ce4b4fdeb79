// Vector halving and doubling in blocks of a power of two ranks, joined for any p: the common part of halving_doubling
// and swing.
//
// p is a sum of different powers of two: 13 ranks are blocks of 8, 4 and 1, larger blocks first. Every block
// reduce-scatters among its own ranks by halving: b ranks, log b steps, and each holds 1/b of the vector. Then the
// smallest block passes its sums to the next larger one, which adds them and passes its own on. The largest block
// completes the sums and hands them back down the same way, and every block all-gathers by doubling. If a block is 2^k
// times as large as the next, a rank of the smaller one exchanges with 2^k ranks of the larger one, one after the
// other.
//
// Steps: 2 log b1 + 2 sum (b_i / b_(i+1)) for blocks b1 > b2 > ... Bytes: 2 (b-1)/b n in a block of b, and 2/b n
// between it and the next larger one. For a power of two that is 2 log p steps and 2 (p-1)/p n, the least possible.
//
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005 ("binary blocks"), and Gloo.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// The partners of members in a block of 2^steps ranks: pure functions of a member's number in the block.
struct Pairing {
  // Returns the partner in a step; an involution for every step < steps.
  std::uint32_t (*partner)(std::uint32_t member, std::uint32_t step, std::uint32_t steps);

  // Returns the part of the vector, of 2^steps parts, that the member holds after halving. The parts of two partners
  // agree in as many leading bits as there were steps before, and differ in the next: the two exchange one range.
  std::uint32_t (*part)(std::uint32_t member, std::uint32_t steps);
  std::uint32_t (*member)(std::uint32_t part, std::uint32_t steps);  // inverse of part()
};

// Returns the lowest `count` bits of `number` in reverse order.
[[nodiscard]] std::uint32_t reversed_bits(std::uint32_t number, std::uint32_t count);

// For Algorithm::chunks and Algorithm::rounds.
[[nodiscard]] std::uint32_t chunks_of_blocks(plan::Spec const& spec);
[[nodiscard]] std::uint32_t rounds_of_blocks(plan::Spec const& spec, plan::Rank rank);

void emit_blocks(Pairing const& pairing, plan::Spec const& spec, plan::Rank rank, std::uint32_t round,
                 plan::Sink& sink);

}  // namespace chorus::algorithms
