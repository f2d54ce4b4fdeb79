// A rank's role within an algorithm, by name and neighbours, derived from its program.
#pragma once

#include <string>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::topology {

struct Role {
  std::string name;                  // "root", "interior", "leaf", "member"
  std::vector<plan::Rank> sends_to;  // ascending
  std::vector<plan::Rank> receives_from;
  friend bool operator==(Role const&, Role const&) = default;
};

// In a rooted algorithm: "root" is the spec's root, "leaf" a rank with one peer only, "interior" one with more.
// "member": a rank of a symmetric algorithm such as the ring.
[[nodiscard]] Role role_of(plan::Program const& program);

}  // namespace chorus::topology
