// The present members and groups, and the requests to workers that change them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/cluster/cluster_state.hpp"
#include "server/coordinator/cluster/cluster_tools.hpp"
#include "server/coordinator/cluster/group_changes.hpp"
#include "server/coordinator/cluster/joining_links.hpp"
#include "server/coordinator/cluster/link_probes.hpp"
#include "server/coordinator/cluster/suspicions.hpp"

namespace chorus::coordinator {

struct ClusterPatience {
  std::chrono::milliseconds probe{2000};       // for a joining worker to answer at its advertised address
  std::chrono::milliseconds suspicion{1000};   // for a worker whose connection broke
  std::chrono::milliseconds assignment{5000};  // for the members to take a new epoch
  std::chrono::milliseconds measuring{5000};   // for one link of a worker that has joined
  ProbingPatience pairs;                       // for the pairs of a group whose ranks follow measured links
};

class Cluster {
 public:
  using Tools = ClusterTools;
  // Called with id, incarnation and reason when an incarnation is gone.
  using OnLost = std::function<void(std::string const&, std::string const&, std::string const&)>;

  // The objects in the tools outlive this. Used on one thread.
  Cluster(Tools tools, ClusterPatience patience, std::chrono::milliseconds lease);
  Cluster(Cluster const&) = delete;
  Cluster& operator=(Cluster const&) = delete;

  // Restores the state of the journal. Called before start().
  void restore(JournalState state);

  // Callbacks; each may be empty.
  struct Listeners {
    OnLost lost;
    // The process of this incarnation has provably ended: it has left, a newer one has its name, or its port refuses
    // connections. Called after `lost` if the worker was not lost before; possibly long after.
    std::function<void(std::string const& worker, std::string const& incarnation)> ended;
    std::function<void(std::string const& group)> group_changed;  // the group has a new epoch
    std::function<void(std::string const& worker)> joined;        // also for a worker that comes back
  };
  // Starts to watch the leases and to call the listeners.
  void start(Listeners listeners);
  // Refuses all later changes of groups, also those that wait for their turn.
  void drain();
  boost::asio::awaitable<void> stop();

  struct Joined {
    api::Worker worker;
    bool created = false;
  };
  // Problems as in Membership::join; worker_unreachable if no process answers at the address; those of Journal::flush,
  // because the coordinator could not fence a worker that the journal forgets.
  boost::asio::awaitable<http::Checked<Joined>> join(api::JoinRequest request);
  // Renews a lease. Also investigates failed calls that the worker reports: accused workers are probed, and a group
  // that may shrink gets a new epoch, because an epoch with a failed call is over.
  [[nodiscard]] http::Checked<api::LeaseAnswer> renew(std::string_view id, api::LeaseRequest const& request);
  boost::asio::awaitable<std::optional<http::Problem>> leave(std::string id, std::optional<std::string> incarnation);

  // Makes a new epoch, also for the same members, and returns when every member has taken it. If the ranks follow
  // measured links, pairs of members without a measurement measure their link before.
  // Problems as in pick_members; those of Journal::flush; worker_unreachable or a member's problem, with the name of
  // the member. Then the group keeps its former epoch and is degraded, because members may have left that epoch.
  boost::asio::awaitable<http::Checked<api::Group>> put_group(std::string name, api::GroupRequest request) {
    return group_changes_.put(std::move(name), std::move(request));
  }
  // Deletes a group, and returns when its members have been told: their calls end with epoch_fenced. A member that
  // cannot be reached stays in the epoch until it hears of a later one of this name. Problems: unknown_group; those of
  // Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> erase_group(std::string name) {
    return group_changes_.erase(std::move(name));
  }

  // A member with its roles, in groups of any size. Problems: unknown_group; unknown_worker without such a rank.
  boost::asio::awaitable<http::Checked<api::Member>> member(std::string group, std::uint32_t rank);

  // A connection to this incarnation broke. If its address refuses connections, the process has ended, and the worker
  // is lost before its lease passes.
  void suspect(std::string const& id, std::string const& incarnation) { suspicions_.suspect(id, incarnation); }

  // Checks that a process answers at the worker's address. Problem unknown_worker.
  boost::asio::awaitable<http::Checked<api::Reachability>> reach(std::string id);

  [[nodiscard]] Membership const& membership() const { return state_.membership(); }
  [[nodiscard]] Groups const& groups() const { return state_.groups(); }
  [[nodiscard]] http::Checked<api::Worker> find(std::string_view id) const;
  [[nodiscard]] api::Worker show(Worker const& worker) const;
  [[nodiscard]] api::Group show(api::Group group) const;
  // Links that workers measured when they joined, the newest last.
  [[nodiscard]] std::vector<api::MeasuredLink> const& links() const { return joining_links_.links(); }
  // Links that the members of a group's epoch have measured, if its ranks follow them. Problem unknown_group.
  [[nodiscard]] http::Checked<std::vector<api::MeasuredLink>> links_of(std::string_view group) const;

 private:
  boost::asio::awaitable<void> watch_leases();
  void tell_of_takeover(Worker const& worker);
  void hear_of_calls(std::string_view worker, std::string_view incarnation, api::GroupCalls const& calls);
  void lose(Worker const& worker, std::string const& why, bool has_ended);
  void members_changed();
  void tell_end(Worker const& worker);

  Tools const tools_;
  ClusterPatience const patience_;
  ClusterState state_;
  JoiningLinks joining_links_;
  GroupChanges group_changes_;
  Suspicions suspicions_;
  Listeners listeners_;
  http::TaskGroup watch_;  // ends by cancellation
};

}  // namespace chorus::coordinator
