// The limit of every timeout_ms of a collective, at the coordinator and in calls of members.
#pragma once

#include <cstdint>

namespace chorus::api {

inline constexpr std::uint64_t longest_timeout_ms = 24 * 3600 * 1000;

}  // namespace chorus::api
