// Makes, repairs and deletes groups. Changes of one group come one after the other; each is told to all members before
// it is published.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/cluster/cluster_state.hpp"
#include "server/coordinator/cluster/cluster_tools.hpp"
#include "server/coordinator/cluster/link_probes.hpp"

namespace chorus::coordinator {

class TellMembers;

// Used on one thread. Tools and state outlive join().
class GroupChanges {
 public:
  struct Patience {
    std::chrono::milliseconds assignment;  // for the members to take a new epoch
    ProbingPatience pairs;
  };
  // on_silent: a member has not answered. May be called until join() has returned.
  GroupChanges(ClusterTools const& tools, ClusterState& state, Patience patience,
               std::function<void(api::Member const&)> on_silent);
  GroupChanges(GroupChanges const&) = delete;
  GroupChanges& operator=(GroupChanges const&) = delete;

  // Called with the name of a group that has a new epoch.
  void listen(std::function<void(std::string const&)> on_epoch) { on_epoch_ = std::move(on_epoch); }

  // See Cluster::put_group and Cluster::erase_group.
  boost::asio::awaitable<http::Checked<api::Group>> put(std::string name, api::GroupRequest request);
  boost::asio::awaitable<std::optional<http::Problem>> erase(std::string name);
  // Repairs the groups that may shrink and whose members should change.
  void mend_all();
  // Repairs a group in whose epoch a call has failed; 0: whose members should change.
  void mend(std::string const& name, std::uint32_t broken_epoch);
  // A call has failed in this epoch: from now on the journal shows that a group that may shrink needs another one.
  void remember_failure(std::string const& name, std::uint32_t epoch);
  // Repairs the groups that the previous process has left without their next epoch.
  void resume();

  // Measured pairs of a group in the journal.
  void remember_pairs(JournalGroup const& kept);
  // Those who measure or wait look again whether they should: the members, or the state, have changed.
  void look_again() { pairs_.look_again(); }

  // After ClusterState::drain(): ends measurements, and waits for the changes that are under way.
  void cancel();
  boost::asio::awaitable<void> join();

 private:
  struct Change;

  // True if the group may shrink, and either its members should change or a call failed in its present epoch.
  [[nodiscard]] bool needs_mending(api::Group const& group, std::uint32_t broken_epoch) const;
  [[nodiscard]] bool may_measure(Change const& change) const;
  boost::asio::awaitable<void> measure_pairs(std::shared_ptr<Change> change, std::vector<Worker> members);
  [[nodiscard]] Standing standing_of(std::vector<Worker> const& members, api::GroupRequest const& request) const;
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

  ClusterTools const& tools_;
  ClusterState& state_;
  Patience const patience_;
  std::function<void(api::Member const&)> const on_silent_;
  std::function<void(std::string const&)> on_epoch_;
  LinkProbes pairs_;
  std::set<std::string, std::less<>> mending_;  // groups
  http::TaskGroup changes_;                     // end by themselves
};

}  // namespace chorus::coordinator
