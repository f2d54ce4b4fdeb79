// The members and groups as they are now, and the conversations with workers that change them.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/events.hpp"
#include "server/coordinator/groups.hpp"
#include "server/coordinator/habits.hpp"
#include "server/coordinator/journal.hpp"
#include "server/coordinator/lock_table.hpp"
#include "server/coordinator/membership.hpp"
#include "server/coordinator/pair_probes.hpp"
#include "server/coordinator/planner.hpp"
#include "server/coordinator/records.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

struct ClusterPatience {
  std::chrono::milliseconds probe{2000};       // for a joining worker to answer at the address that it gave
  std::chrono::milliseconds suspicion{1000};   // for a worker whose connection broke
  std::chrono::milliseconds assignment{5000};  // for the members to take a new epoch
  std::chrono::milliseconds measuring{5000};   // of one link of a worker that has joined
  ProbingPatience pairs;                       // of the members of a group that asks for it
};

class Cluster {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Planner& planner;
    LockTable& locks;  // changes of one group happen one after the other
    http::Condition& locks_changed;
    metrics::CoordinatorMetrics& metrics;
    Journal& journal;
    Events& events;
    Habits& habits;
    spdlog::logger& log;
    Random random;
  };
  // An incarnation that is gone: id, incarnation, why.
  using OnLost = std::function<void(std::string const&, std::string const&, std::string const&)>;

  // What the tools refer to outlives this. One thread.
  Cluster(Tools tools, ClusterPatience patience, std::chrono::milliseconds lease);
  ~Cluster();  // after stop()
  Cluster(Cluster const&) = delete;
  Cluster& operator=(Cluster const&) = delete;

  // What the journal has kept. Before start().
  void restore(KeptState state);

  // Who wants to know; any of them may be empty.
  struct Listeners {
    OnLost lost;
    std::function<void(std::string const& worker, std::string const& incarnation)> left;  // by its own will
    std::function<void(std::string const& group)> group_changed;                          // it has a new epoch
    std::function<void(std::string const& worker)> joined;                                // also one that comes back
  };
  // Watches the leases from now on, and tells.
  void start(Listeners listeners);
  // From now on changes of groups are refused, also those that wait for their turn.
  void drain();
  boost::asio::awaitable<void> stop();

  struct Joined {
    api::Worker worker;
    bool created = false;
  };
  // Problems as Membership::join, worker_unreachable if nobody answers at the address, and those of Journal::flush:
  // what the journal forgets it could not fence.
  boost::asio::awaitable<http::Checked<Joined>> join(api::JoinRequest request);
  // What the worker's own calls have met is looked into: who is accused is probed, and a group that may shrink gets a
  // new epoch, for one in which a call has failed is over.
  [[nodiscard]] http::Checked<api::LeaseAnswer> renew(std::string_view id, api::LeaseRequest const& request);
  boost::asio::awaitable<std::optional<http::Problem>> leave(std::string id, std::optional<std::string> incarnation);

  // Makes a new epoch, also for the same members, and returns when every member has taken it. If the ranks are to
  // follow measured links, pairs of members that have not measured the way between them do so before. Problems as
  // pick_members; those of Journal::flush; worker_unreachable or what the member answered, naming the member: the group
  // then keeps its former epoch and is degraded, for its members may have left it.
  boost::asio::awaitable<http::Checked<api::Group>> put_group(std::string name, api::GroupRequest request);
  boost::asio::awaitable<std::optional<http::Problem>> erase_group(std::string name);

  // A connection to that incarnation broke: if its address refuses connections it is lost, without waiting for the
  // lease.
  void suspect(std::string const& id, std::string const& incarnation);

  // Asks at the address that the worker gave whether anybody is there. Problem unknown_worker.
  boost::asio::awaitable<http::Checked<api::Reachability>> reach(std::string id);

  [[nodiscard]] Membership const& membership() const { return membership_; }
  [[nodiscard]] Groups const& groups() const { return groups_; }
  [[nodiscard]] http::Checked<api::Worker> find(std::string_view id) const;
  [[nodiscard]] api::Worker show(Worker const& worker) const;
  [[nodiscard]] api::Group show(api::Group group) const;
  // What workers measured when they joined, the newest last.
  [[nodiscard]] std::vector<api::MeasuredLink> const& links() const { return links_; }
  // What the members of a group's epoch have measured of each other, if its ranks follow that. Problem unknown_group.
  [[nodiscard]] http::Checked<std::vector<api::MeasuredLink>> links_of(std::string_view group) const;

 private:
  struct Change;
  struct Looks;
  class Turn;

  boost::asio::awaitable<void> watch_leases();
  boost::asio::awaitable<void> look_after(Worker worker);
  boost::asio::awaitable<void> look_at_member(Worker worker, std::shared_ptr<Looks> looks);
  boost::asio::awaitable<void> look_into(api::Trouble trouble);
  void hear_of_calls(std::string_view worker, std::string_view incarnation, api::GroupCalls const& calls);
  void mend_groups();
  void mend(std::string const& name, std::uint32_t broken_epoch);
  // It may shrink, and other members should be in it than are, or the epoch in which a call has failed is its own.
  [[nodiscard]] bool needs_mending(api::Group const& group, std::uint32_t broken_epoch) const;
  boost::asio::awaitable<void> measure_links(Worker worker);
  boost::asio::awaitable<bool> measure_link(Worker worker, Worker peer, Level level);
  [[nodiscard]] bool is_still_there(Worker const& worker) const;
  boost::asio::awaitable<void> measure_pairs(std::shared_ptr<Change> change, std::vector<Worker> members);
  [[nodiscard]] bool may_measure(Change const& change) const;
  [[nodiscard]] Standing standing_of(std::vector<Worker> const& members, api::GroupRequest const& request) const;
  void remember_pairs(KeptGroup const& kept);
  boost::asio::awaitable<void> change_group(std::shared_ptr<Change> change);
  boost::asio::awaitable<http::Checked<api::Group>> make_epoch(std::shared_ptr<Change> change);
  boost::asio::awaitable<std::optional<http::Problem>> push(std::shared_ptr<Change> change, api::Group group);
  boost::asio::awaitable<void> push_to(std::shared_ptr<Change> change, api::GroupAssignment assignment,
                                       api::Member member, TimePoint deadline);
  void lose(Worker const& worker, std::string const& why);
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
  PairProbes pairs_;
  LockTable measuring_;  // workers, as they have joined
  http::Condition turn_over_;
  Listeners listeners_;
  std::set<std::string, std::less<>> mending_;  // groups
  bool stopping_ = false;
  http::TaskGroup watch_;    // ends by cancellation
  http::TaskGroup changes_;  // end by themselves
};

}  // namespace chorus::coordinator
