// swing: halving and doubling with partners that swing from one side to the other: 1, -1, 3, -5, 11, ... ranks away.
//
// Steps: 2 log2 p if p is a power of two. Bytes: every rank then sends 2 (p-1)/p n. As good as halving_doubling on a
// network whose pairs are equally near, better on a ring or a torus: step s goes about 2^s / 3 * 2 hops instead of 2^s,
// and uses both directions at once. For other p it runs in blocks of powers of two, see binary_blocks.hpp
// (the paper sends some blocks separately if p is even, and folds one rank if it is odd).
//
// In step s even ranks meet the rank rho(s) = (1 - (-2)^(s+1)) / 3 further on, odd ranks the rank rho(s) back. All rho
// are odd, so even ranks meet odd ranks, and rho(s) = rho(t) mod 2^(s+1) for all t >= s. Hence the ranks that can still
// meet after step s, and so reduce the same chunks, form one class of a number k modulo 2^s: the even rank 2k and the
// odd rank that would meet 2k last have the number k. So the part of the vector at which a rank ends is the bits of k
// from the lowest up, then odd or even, and the chunks that it sends in any step are one range.
//
// Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce", NSDI 2024.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"
#include "collectives/algorithms/doubling/binary_blocks.hpp"

namespace chorus::algorithms {
namespace {

// (1 - (-2)^(s+1)) / 3 in unsigned arithmetic, whose wrap-around is correct modulo powers of two; step <= 30.
std::uint32_t rho(std::uint32_t step) {
  auto const power = 1u << (step + 1);
  return step % 2 == 0 ? (1 + power) / 3 : 0u - (power - 1) / 3;
}

std::uint32_t partner(std::uint32_t member, std::uint32_t step, std::uint32_t steps) {
  auto const mask = (1u << steps) - 1;
  return (member % 2 == 0 ? member + rho(step) : member - rho(step)) & mask;
}

std::uint32_t part(std::uint32_t member, std::uint32_t steps) {
  if (steps == 0) return 0;
  auto const even = member % 2 == 0 ? member : partner(member, steps - 1, steps);
  return reversed_bits(even / 2, steps - 1) * 2 + member % 2;
}

std::uint32_t member(std::uint32_t part, std::uint32_t steps) {
  if (steps == 0) return 0;
  auto const even = reversed_bits(part / 2, steps - 1) * 2;
  return part % 2 == 0 ? even : partner(even, steps - 1, steps);
}

constexpr Pairing pairing{.partner = partner, .part = part, .member = member};

void emit(plan::Spec const& spec, plan::Rank rank, std::uint32_t round, plan::Sink& sink) {
  emit_blocks(pairing, spec, rank, round, sink);
}

}  // namespace

plan::Algorithm const swing{
    .name = "swing",
    .summary =
        "halve and double with partners on alternate sides: 2 log2 p steps, 2(p-1)/p n bytes, few hops on a torus",
    .check = only_all_reduce,
    .chunks = chunks_of_blocks,
    .scratch_chunks = no_scratch,
    .rounds = rounds_of_blocks,
    .emit = emit,
    .summation = pairs_of_powers,
};

}  // namespace chorus::algorithms
