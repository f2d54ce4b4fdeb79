// The members of a group at one epoch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/program/run_spec.hpp"

namespace chorus {

// Equal on all members, except for `rank`.
struct GroupMembership {
  std::string name;
  std::uint32_t epoch = 1;
  plan::Rank rank = 0;
  std::vector<engine::Peer> members;  // in rank order
  std::uint64_t token = 0;            // presented by the links of the group's calls
};

}  // namespace chorus
