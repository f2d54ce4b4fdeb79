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

// Counts and digests of the messages per peer. Digests cover number, lane and length of every message, and, if
// `same_chunks_on_both_ends` (see Algorithm), also which chunks it carries; scratch chunk k counts as k mod C.
void digest_channels(Program& program, bool same_chunks_on_both_ends);

}  // namespace chorus::plan
