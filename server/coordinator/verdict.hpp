// Is everything well, and if not, what is wrong, in one sentence: a pure function of what can be read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "http/api/parameters.hpp"
#include "http/api/status.hpp"

namespace chorus::coordinator {

struct Facts {
  std::vector<api::Worker> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;  // newest first
  std::vector<api::Parameter> parameters;
  std::optional<std::string> journal_failure;
  bool draining = false;
  bool is_unprotected = false;  // --insecure-no-auth
};

// Red: a group that nothing can run in, a parameter without an owner, a journal that cannot be written. Amber: a worker
// that is lost or late (silent for half its lease), a group or parameter with less than was asked for, a group whose
// last collective failed, a running collective that is stalled or waits for some of its ranks only, workers of
// different versions, nobody there yet, a coordinator that is stopping, or that anybody may use.
[[nodiscard]] api::Verdict judge(Facts const& facts);

// What somebody is told who may not read: why nothing is told, and what to do about it. Nothing of how things stand.
[[nodiscard]] api::Verdict verdict_for_strangers();

}  // namespace chorus::coordinator
