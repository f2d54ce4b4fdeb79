// From a call at one's own worker to the run that it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "http/api/runs.hpp"
#include "worker/service/group.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// What the call by itself says that cannot be. Problems name the field.
[[nodiscard]] std::optional<http::Problem> check_call(Op op, api::LocalCall const& call);

// Of a call that was checked: what this member can tell by itself; its tensors must fit, but nothing of them is held,
// unless it takes a list of them: the order is that of the list's first portion, and holds all.
// Problems name the field: invalid_field, unknown_tensor, busy, mismatch, unsupported.
[[nodiscard]] http::Checked<RunOrder> to_order(Assignment const& assignment, std::uint64_t sequence, Op op,
                                               std::chrono::steady_clock::time_point deadline,
                                               api::LocalCall const& call, tensors::Store const& store);

// Another portion of the list, from the order for the first. Problem: unsupported, where the group's table has no line.
[[nodiscard]] http::Checked<RunOrder> portion_of(RunOrder const& first, std::size_t portion,
                                                 Assignment const& assignment, api::LocalCall const& call);

}  // namespace chorus::service
