// Statistics of groups: how long their collectives take, which members come late, and which tensors their ranks hold.
#pragma once

#include <map>
#include <string>

#include "collectives/core/pace.hpp"
#include "server/coordinator/admission/tensor_metadata_cache.hpp"
#include "server/coordinator/diagnosis/stragglers.hpp"

namespace chorus::coordinator {

// Used on one thread.
struct GroupStatistics {
  std::map<std::string, Pace> paces;  // by group
  Stragglers stragglers;
  TensorMetadataCache tensors;

  void forget(std::string const& group) {
    paces.erase(group);
    stragglers.forget(group);
    tensors.forget(group);
  }
};

}  // namespace chorus::coordinator
