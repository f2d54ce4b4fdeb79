// The names by which ranks recognise that they run the same thing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/sizes.hpp"

namespace chorus::engine {

// The run number of the n-th call of a group's members at an epoch: the same on every rank, bit 63 set. Calls of
// different groups, epochs or numbers meet with a probability of 2^-63 per pair; the fingerprint and the token would
// tell them apart.
[[nodiscard]] std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence);

// Of a call that is several runs, one after the other: that of its portion. The first one's is the call's.
[[nodiscard]] std::uint64_t portion_run_number(std::uint64_t call, std::uint64_t portion);

// Over everything that the ranks of a run must agree on beside the plan's messages.
// `agreement`: what the callers agreed on beside, such as fusion_digest(); 0: nothing.
// The counts of all_to_all differ from rank to rank: there the sizes of the channels agree, or the run is refused.
[[nodiscard]] std::uint64_t fingerprint(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                                        std::uint64_t agreement = 0);

// The digest of a channel (plan::Channel) with the bytes of its messages in it: ranks whose counts differ are refused.
[[nodiscard]] std::uint64_t channel_digest(std::uint64_t plan_digest, std::span<std::uint64_t const> message_bytes);

// The same for people: "all_reduce sum f32[4096] ring of 4"; with root, arity and "in place" where they matter,
// and "pieces 4711" for what else was agreed.
[[nodiscard]] std::string describe(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                                   std::uint64_t agreement = 0);

}  // namespace chorus::engine
