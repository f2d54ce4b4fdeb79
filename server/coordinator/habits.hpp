// What the groups have shown of themselves: how long their collectives take, who comes late, and what their ranks hold.
#pragma once

#include <map>
#include <string>

#include "collectives/core/pace.hpp"
#include "server/coordinator/known_tensors.hpp"
#include "server/coordinator/stragglers.hpp"

namespace chorus::coordinator {

// One thread.
struct Habits {
  std::map<std::string, Pace> paces;  // by group
  Stragglers stragglers;
  KnownTensors tensors;

  void forget(std::string const& group) {
    paces.erase(group);
    stragglers.forget(group);
    tensors.forget(group);
  }
};

}  // namespace chorus::coordinator
