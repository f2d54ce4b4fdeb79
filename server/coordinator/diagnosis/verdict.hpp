// Judges the health of the whole cluster in one sentence; a pure function of readable facts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/parameters/parameters.hpp"

namespace chorus::coordinator {

struct Facts {
  std::vector<api::Worker> workers;
  std::vector<std::shared_ptr<api::Group const>> groups;
  std::vector<api::Collective> collectives;  // newest first
  std::vector<api::Parameter> parameters;
  std::optional<std::string> journal_failure;
  bool draining = false;
  bool is_unprotected = false;  // --insecure-no-auth
};

// Red: an unusable group, a parameter without an owner, a journal that cannot be written.
// Amber: a worker that is lost, late (silent for half its lease), or whose name several processes claim; a group or
// parameter with less than was asked for; a group whose last collective failed; a running collective that is stalled or
// waits for only some of its ranks; workers of different versions; no workers yet; a coordinator that is stopping, or
// that everybody may use.
[[nodiscard]] api::Verdict judge(Facts const& facts);

// Returns the verdict for callers that may not read: it says why it tells nothing and what to do, and reveals no state.
[[nodiscard]] api::Verdict verdict_for_strangers();

}  // namespace chorus::coordinator
