// What happens to a program between the author's rounds and the engine. build() runs them in this order; each expects
// what the one before it leaves behind.
#pragma once

#include "collectives/plan/program.hpp"

namespace chorus::plan {

// In place, every mention of the input becomes the output, and a copy of a range onto itself disappears (unless it is
// final: then it divides).
void unify_in_place(Program& program);

// Sends first, then everything else as emitted, so that the order of the program is the meaning of the rounds.
void order_rounds(Program& program);

// The n-th message of each direction between this rank and a peer, in program order.
void number_messages(Program& program);

// Read after write, write after read and write after write, from chunk ranges: every instruction waits for the last
// writer and, before it writes, for the readers since then. Waits that another wait implies are left out where one step
// back shows it.
void derive_dependencies(Program& program);

// Marks the partial sums that only this rank's own reductions read: see wide_operand_flag. Only where the operation
// reduces.
void widen_partials(Program& program);

// Marks what is a sum before it is added: see partial_operand_flag. Of what a peer sends it asks the peer's round of
// the same number, one more emission for each message. Only where the operation reduces.
void mark_partials(Algorithm const& algorithm, Program& program);

// Counts and digests of the messages per peer. Digests cover number, lane and length of every message, and, if
// `same_chunks_on_both_ends` (see Algorithm), also which chunks it carries; scratch chunk k counts as k mod C.
void digest_channels(Program& program, bool same_chunks_on_both_ends);

// Up to here ranks are positions: a program of by_positions(spec). Puts the rank at each position in its place, and
// `spec` in that of the program. Chunks keep their numbers. Without by_position nothing changes.
void name_ranks(Program& program, Spec const& spec);

}  // namespace chorus::plan
