// The passes that make a program of an author's rounds. build() runs them in this order; each needs those before it.
#pragma once

#include "collectives/plan/program.hpp"

namespace chorus::plan {

// Makes the two buffers of a rank in place one: replaces the input by the output, and removes copies of a range onto
// itself, unless they are final and so divide.
void unify_in_place(Program& program);

// Puts the sends of a round before its other instructions, so that the program in its order does what the rounds mean.
void order_rounds(Program& program);

// Numbers the messages of each direction between this rank and a peer, in program order.
void number_messages(Program& program);

// Derives read after write, write after read and write after write from chunk ranges: every instruction waits for the
// last writer and, before it writes, for the readers since then. Leaves out waits that the dependencies of another
// awaited instruction imply in one step.
void derive_dependencies(Program& program);

// Marks the partial sums that only this rank's own reductions read: see wide_operand_flag. No effect on operations that
// do not reduce.
void widen_partials(Program& program);

// Marks the terms of reductions that are partial sums: see partial_operand_flag. Emits the peer's round of the same
// number once for each received message. No effect on operations that do not reduce.
void mark_partials(Algorithm const& algorithm, Program& program);

// Adds the digests of the messages per peer. They cover number, lane and length of every message and, if
// `same_chunks_on_both_ends` (see Algorithm), the numbers of its chunks, and whether these hold codes; scratch chunk k
// counts as k mod C.
void digest_channels(Program& program, bool same_chunks_on_both_ends);

// Replaces positions by ranks in a program of by_positions(spec), whose spec becomes `spec`. Chunks keep their numbers.
// Without by_position nothing changes.
void name_ranks(Program& program, Spec const& spec);

}  // namespace chorus::plan
