// Describes the problems of a cluster and their remedies in sentences, from the reports of its services.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/flight.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::cli {

// The answer of a service to /readyz.
struct Readiness {
  std::string why_not;    // "" if it is ready
  std::string complaint;  // a problem although it is ready, or ""
};

struct WorkerFacts {
  api::Worker worker;
  std::string unreachable;  // why it does not answer this process, or ""
  Readiness readiness;
  api::Reachability by_coordinator;  // whether the coordinator reaches it
  std::vector<api::RunProgress> runs;
};

struct ClusterFacts {
  std::string version;  // of the coordinator
  Readiness readiness;  // of the coordinator
  api::Verdict verdict;
  std::vector<WorkerFacts> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;  // the newest first
  std::vector<api::MeasuredLink> links;
};

struct Finding {
  enum class Level : bool { note, problem };
  Level level = Level::problem;
  std::string about;   // like "worker w3"
  std::string what;    // one sentence without the full stop
  std::string advice;  // another sentence
};

// Returns problems before notes; empty if the cluster is healthy.
[[nodiscard]] std::vector<Finding> diagnose(ClusterFacts const& facts);

}  // namespace chorus::cli
