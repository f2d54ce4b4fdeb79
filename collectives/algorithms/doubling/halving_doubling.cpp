// halving_doubling: reduce-scatter by exchanging halves, then quarters, ..., and all-gather back.
//
// Steps: 2 log2 p if p is a power of two. Bytes: every rank then sends 2 (p-1)/p n, the minimum. Best for middle and
// long vectors on powers of two: the bytes of a ring in the steps of a tree. For other p see binary_blocks.hpp; few
// large blocks, such as 8 + 4, still do well.
//
// The distance doubles as the vector halves: rank r exchanges n/2 with r xor 1, n/4 with r xor 2, ..., so that
// neighbours exchange the most. A rank's part is its number with reversed bits, which makes every message one range.
//
// Source: Rabenseifner; Thakur, Rabenseifner, Gropp, IJHPCA 2005; Gloo's allreduce_halving_doubling.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"
#include "collectives/algorithms/doubling/binary_blocks.hpp"

namespace chorus::algorithms {
namespace {

std::uint32_t partner(std::uint32_t member, std::uint32_t step, std::uint32_t) { return member ^ (1u << step); }

constexpr Pairing pairing{.partner = partner, .part = reversed_bits, .member = reversed_bits};

void emit(plan::Spec const& spec, plan::Rank rank, std::uint32_t round, plan::Sink& sink) {
  emit_blocks(pairing, spec, rank, round, sink);
}

}  // namespace

plan::Algorithm const halving_doubling{
    .name = "halving_doubling",
    .summary = "halve, then double: 2 log2 p steps, 2(p-1)/p n bytes per rank; other p in blocks of powers of two",
    .check = only_all_reduce,
    .chunks = chunks_of_blocks,
    .scratch_chunks = no_scratch,
    .rounds = rounds_of_blocks,
    .emit = emit,
    .summation = pairs_of_powers,
};

}  // namespace chorus::algorithms
