// The present members and groups, and the requests to workers that change them.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/admission/planner.hpp"
#include "server/coordinator/cluster/link_probes.hpp"
#include "server/coordinator/collectives/group_statistics.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/collectives/records.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/membership/membership.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

class TellMembers;

struct ClusterPatience {
  std::chrono::milliseconds probe{2000};       // for a joining worker to answer at its advertised address
  std::chrono::milliseconds suspicion{1000};   // for a worker whose connection broke
  std::chrono::milliseconds assignment{5000};  // for the members to take a new epoch
  std::chrono::milliseconds measuring{5000};   // for one link of a worker that has joined
  ProbingPatience pairs;                       // for the pairs of a group whose ranks follow measured links
};

class Cluster {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Planner& planner;
    LockTable& locks;  // serialise the changes of one group
    http::Condition& locks_changed;
    metrics::CoordinatorMetrics& metrics;
    Journal& journal;
    Events& events;
    GroupStatistics& group_statistics;
    spdlog::logger& log;
    Random random;
  };
  // Called with id, incarnation and reason when an incarnation is gone.
  using OnLost = std::function<void(std::string const&, std::string const&, std::string const&)>;

  // The objects in the tools outlive this. Used on one thread.
  Cluster(Tools tools, ClusterPatience patience, std::chrono::milliseconds lease);
  ~Cluster();  // after stop()
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
  boost::asio::awaitable<http::Checked<api::Group>> put_group(std::string name, api::GroupRequest request);
  // Deletes a group, and returns when its members have been told: their calls end with epoch_fenced. A member that
  // cannot be reached stays in the epoch until it hears of a later one of this name. Problems: unknown_group; those of
  // Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> erase_group(std::string name);

  // A member with its roles, in groups of any size. Problems: unknown_group; unknown_worker without such a rank.
  boost::asio::awaitable<http::Checked<api::Member>> member(std::string group, std::uint32_t rank);

  // A connection to this incarnation broke. If its address refuses connections, the process has ended, and the worker
  // is lost before its lease passes.
  void suspect(std::string const& id, std::string const& incarnation);

  // Checks that a process answers at the worker's address. Problem unknown_worker.
  boost::asio::awaitable<http::Checked<api::Reachability>> reach(std::string id);

  [[nodiscard]] Membership const& membership() const { return membership_; }
  [[nodiscard]] Groups const& groups() const { return groups_; }
  [[nodiscard]] http::Checked<api::Worker> find(std::string_view id) const;
  [[nodiscard]] api::Worker show(Worker const& worker) const;
  [[nodiscard]] api::Group show(api::Group group) const;
  // Links that workers measured when they joined, the newest last.
  [[nodiscard]] std::vector<api::MeasuredLink> const& links() const { return links_; }
  // Links that the members of a group's epoch have measured, if its ranks follow them. Problem unknown_group.
  [[nodiscard]] http::Checked<std::vector<api::MeasuredLink>> links_of(std::string_view group) const;

 private:
  struct Change;
  struct Looks;
  class Turn;

  boost::asio::awaitable<void> watch_leases();
  boost::asio::awaitable<void> look_after(Worker worker);
  boost::asio::awaitable<void> look_whether_ended(Worker worker);
  // Returns the silent members of groups in which most members are silent: this process may be cut off from them.
  [[nodiscard]] std::set<std::string, std::less<>> cut_off(TimePoint now) const;
  boost::asio::awaitable<void> look_at_member(Worker worker, std::shared_ptr<Looks> looks);
  boost::asio::awaitable<void> look_into(api::Trouble trouble);
  void tell_of_takeover(Worker const& worker);
  void hear_of_calls(std::string_view worker, std::string_view incarnation, api::GroupCalls const& calls);
  void mend_groups();
  void mend(std::string const& name, std::uint32_t broken_epoch);
  // True if the group may shrink, and either its members should change or a call failed in its present epoch.
  [[nodiscard]] bool needs_mending(api::Group const& group, std::uint32_t broken_epoch) const;
  boost::asio::awaitable<void> measure_links(Worker worker);
  boost::asio::awaitable<bool> measure_link(Worker worker, Worker peer, Level level);
  [[nodiscard]] bool is_still_there(Worker const& worker) const;
  boost::asio::awaitable<void> measure_pairs(std::shared_ptr<Change> change, std::vector<Worker> members);
  [[nodiscard]] bool may_measure(Change const& change) const;
  [[nodiscard]] Standing standing_of(std::vector<Worker> const& members, api::GroupRequest const& request) const;
  void remember_pairs(JournalGroup const& kept);
  // Spawns the change, and returns its result.
  boost::asio::awaitable<http::Checked<api::Group>> carried_out(std::shared_ptr<Change> change);
  boost::asio::awaitable<void> change_group(std::shared_ptr<Change> change);
  // False if a PUT asks for another order than the group has, or for a newly measured one.
  [[nodiscard]] static bool keeps_order(Change const& change, api::Group const& former);
  boost::asio::awaitable<http::Checked<api::Group>> make_epoch(std::shared_ptr<Change> change);
  // Returns the group that was deleted.
  boost::asio::awaitable<http::Checked<api::Group>> end_group(std::shared_ptr<Change> change);
  // Sends an epoch to these members, and waits for their answers.
  boost::asio::awaitable<std::shared_ptr<TellMembers>> tell(api::Group group, std::vector<api::Member> members);
  void lose(Worker const& worker, std::string const& why, bool has_ended);
  void degrade_groups_of(Worker const& worker, char const* why);
  void keep_worker(std::string const& id);
  void keep_group(std::string const& name);
  void keep_epoch(std::string const& name, std::optional<std::string> const& forgotten = std::nullopt);
  void tell_of(Worker const& worker, char const* type, std::string const& why);
  void tell_of(api::Group const& group, char const* type, std::string const& why);
  void tell_of(api::Group const& group, api::SlowMember const& member, bool is_slow);
  void count_members();

  Tools const tools_;
  ClusterPatience const patience_;
  Membership membership_;
  Groups groups_;
  std::vector<api::MeasuredLink> links_;
  LinkProbes pairs_;
  LockTable measuring_;  // locks of workers that measure after they joined
  http::Condition turn_over_;
  Listeners listeners_;
  std::set<std::string, std::less<>> mending_;  // groups
  std::set<std::string, std::less<>> looking_whether_ended_;
  bool stopping_ = false;
  http::TaskGroup watch_;    // ends by cancellation
  http::TaskGroup changes_;  // end by themselves
};

}  // namespace chorus::coordinator
