// Run numbers, fingerprints and descriptions by which ranks recognise that they run the same thing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/sizes/sizes.hpp"

namespace chorus::engine {

// True for the number of a members' call, which has bit 63 set; the coordinator's runs, which count from 1, do not.
[[nodiscard]] constexpr bool is_members_call(std::uint64_t run) { return run >> 63 != 0; }

// Run number of a group's n-th members' call in an epoch: the same on every rank. Two calls of different
// groups, epochs or numbers collide with a probability of 2^-63; the fingerprint and the token still tell them apart.
[[nodiscard]] std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence);

// Run number of one portion of a call that consists of several runs, one after the other. The first portion has the
// number of the call.
[[nodiscard]] std::uint64_t portion_run_number(std::uint64_t call, std::uint64_t portion);

// Hash of everything that the ranks of a run must agree on besides the plan's messages. `agreement`: what the callers
// must agree on as well, such as fusion_digest(); 0 for nothing. The counts of all_to_all are left out because they
// differ from rank to rank: there the channels' sizes must agree, or the run is refused. `compression`: name of the
// format, if the call has one.
[[nodiscard]] std::uint64_t fingerprint(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                                        std::uint64_t agreement = 0, std::string_view compression = {});

// Digest of a channel (plan::Channel), extended by the sizes of its messages: ranks whose counts differ are refused.
[[nodiscard]] std::uint64_t channel_digest(std::uint64_t plan_digest, std::span<std::uint64_t const> message_bytes);

// The fingerprint's contents as text: "all_reduce sum f32[4096] ring of 4"; with root, arity and "in place" where they
// matter, "as int8" for the compression, and "pieces 4711" for the agreement.
[[nodiscard]] std::string describe(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                                   std::uint64_t agreement = 0, std::string_view compression = {});

}  // namespace chorus::engine
