// Makes the run of a members' call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "http/api/collectives/runs.hpp"
#include "worker/service/collectives/groups/group.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Checks what can be checked of a call alone. Problems name the field.
[[nodiscard]] std::optional<http::Problem> check_call(Op op, api::LocalCall const& call);

// The order for a checked call, as far as this member can tell. The call's tensors must fit, but are not held; a list
// of tensors is held, and the order is that of its first portion. Problems name the field: invalid_field,
// unknown_tensor, busy, mismatch, unsupported.
[[nodiscard]] http::Checked<RunOrder> to_order(Assignment const& assignment, std::uint64_t sequence, Op op,
                                               std::chrono::steady_clock::time_point deadline,
                                               api::LocalCall const& call, tensors::Store const& store);

// The order for another portion of the list, made from that of the first. Problem unsupported if the group's table has
// no line.
[[nodiscard]] http::Checked<RunOrder> portion_of(RunOrder const& first, std::size_t portion,
                                                 Assignment const& assignment, api::LocalCall const& call);

}  // namespace chorus::service
