// What the groups have shown of themselves: how long their collectives take, and who comes late.
#pragma once

#include <map>
#include <string>

#include "collectives/core/pace.hpp"
#include "server/coordinator/stragglers.hpp"

namespace chorus::coordinator {

// One thread.
struct Habits {
  std::map<std::string, Pace> paces;  // by group
  Stragglers stragglers;

  void forget(std::string const& group) {
    paces.erase(group);
    stragglers.forget(group);
  }
};

}  // namespace chorus::coordinator
