// Numbers that all members of a group compute for themselves and that must come out the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::service {

// The run of the n-th call on a group in an epoch. Bit 63 tells it from the coordinator's runs.
[[nodiscard]] std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence);

// Over everything that the ranks of a run must agree on.
[[nodiscard]] std::uint64_t run_fingerprint(plan::Spec const& spec, Dtype dtype, std::uint64_t elements,
                                            ReduceOp reduce);

}  // namespace chorus::service
