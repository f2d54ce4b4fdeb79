// The requests for rows to the owner of one shard.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http/api/parameters/parameters.hpp"
#include "http/client/client.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/parameters/shard/pushes/rows.hpp"

namespace chorus::parameters {

// The memory of push and numbers outlives the call.

// Makes the push of a shard that has `push.data` to itself.
[[nodiscard]] http::Call call_of_rows(Push const& push);
// Makes the push of a shard's part of the rows. It may have no rows: every shard gets every sequence number, because it
// expects the numbers in order.
[[nodiscard]] http::Call call_of_rows(Push const& push, RowPart part);
// Makes the pull of rows. query: "min_version=4&", or "".
[[nodiscard]] http::Call call_for_rows(std::span<std::uint64_t const> numbers, std::string const& query,
                                       std::optional<std::uint64_t> clock);

// Rows of the owner's shard; `width`: elements of a row, not 0.
[[nodiscard]] RowRange row_range_of(api::ParameterEndpoint const& owner, std::uint64_t width);

}  // namespace chorus::parameters
