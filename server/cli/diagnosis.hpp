// What is wrong with a cluster, in sentences, and what to do about it: from what its services say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/flight.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "http/api/probes.hpp"

namespace chorus::cli {

struct WorkerFacts {
  api::Worker worker;
  std::string unreachable;           // why it does not answer us, or ""
  std::string unready;               // what its /readyz says, or ""
  api::Reachability by_coordinator;  // whether it answers the coordinator
  std::vector<api::RunProgress> runs;
};

struct ClusterFacts {
  std::string version;  // of the coordinator
  std::string unready;  // what its /readyz says, or ""
  std::vector<WorkerFacts> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;  // the newest first
  std::vector<api::MeasuredLink> links;
};

struct Finding {
  enum class Level : bool { note, problem };
  Level level = Level::problem;
  std::string about;   // "worker w3"
  std::string what;    // one sentence without its end
  std::string advice;  // another
};

// Problems first. None: it is healthy.
[[nodiscard]] std::vector<Finding> diagnose(ClusterFacts const& facts);

}  // namespace chorus::cli
