// The members and the groups. Every change of them is written to the journal, told as an event, and counted.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <optional>
#include <string>

#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/membership/membership.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the tools outlive it.
class ClusterState {
 public:
  struct Tools {
    Journal& journal;
    Events& events;
    metrics::CoordinatorMetrics& metrics;
    spdlog::logger& log;
  };
  ClusterState(Tools tools, std::chrono::milliseconds lease) : tools_(tools), membership_(lease) {}
  ClusterState(ClusterState const&) = delete;
  ClusterState& operator=(ClusterState const&) = delete;

  // Restores the state of the journal.
  void restore(JournalState state);

  // From here on groups are not changed and workers not looked after.
  void drain() { is_draining_ = true; }
  [[nodiscard]] bool is_draining() const { return is_draining_; }

  // Whoever changes one of these then calls the functions below.
  [[nodiscard]] Membership& membership() { return membership_; }
  [[nodiscard]] Membership const& membership() const { return membership_; }
  [[nodiscard]] Groups& groups() { return groups_; }
  [[nodiscard]] Groups const& groups() const { return groups_; }

  // Write the present state of one worker, group or epoch counter to the journal. `forgotten`: the name whose counter
  // the groups have dropped meanwhile.
  void keep_worker(std::string const& id);
  void keep_group(std::string const& name);
  void keep_epoch(std::string const& name, std::optional<std::string> const& forgotten = std::nullopt);

  // Publish an event; see event_of().
  void tell_of(Worker const& worker, char const* type, std::string const& why);
  void tell_of(api::Group const& group, char const* type, std::string const& why);
  void tell_of(api::Group const& group, api::SlowMember const& member, bool is_slow);

  // The worker is no longer a member of its groups; `why` ends a sentence: "is lost".
  void degrade_groups_of(Worker const& worker, char const* why);
  void count_members();

 private:
  Tools const tools_;
  Membership membership_;
  Groups groups_;
  bool is_draining_ = false;
};

}  // namespace chorus::coordinator
