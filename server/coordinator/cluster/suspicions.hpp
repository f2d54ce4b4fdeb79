// Finds out whether silent or accused workers live: their addresses are probed.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/cluster/cluster_state.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Returns the silent members of groups in which most members are silent: this process may be cut off from them.
[[nodiscard]] std::set<std::string, std::less<>> cut_off(ClusterState const& state, TimePoint now);

// Used on one thread. The objects in the tools outlive join().
class Suspicions {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    ClusterState& state;
  };
  struct Verdicts {
    // The worker's address refuses connections; Membership has it as lost.
    std::function<void(Worker const& worker, std::string const& why)> lost;
    // So does that of a worker that was lost before, because it was silent.
    std::function<void(Worker const& worker)> ended;
    // A call has failed in this epoch, which is the group's present one; members that have ended are lost by now.
    std::function<void(std::string const& group, std::uint32_t epoch)> broken;
  };
  // patience: for a worker whose connection broke. Verdicts may be called until join() has returned.
  Suspicions(Tools tools, std::chrono::milliseconds patience, Verdicts verdicts)
      : tools_(tools), patience_(patience), verdicts_(std::move(verdicts)), probes_(tools_.executor) {}
  Suspicions(Suspicions const&) = delete;
  Suspicions& operator=(Suspicions const&) = delete;

  // A connection to this incarnation broke.
  void suspect(std::string const& id, std::string const& incarnation);
  // A member reports a failed call. Every member of the group reports it: reports that come while the members are
  // probed are one more.
  void look_into(api::Trouble const& trouble);

  // After ClusterState::drain().
  boost::asio::awaitable<void> join() { return probes_.join(); }

 private:
  struct Looks;

  boost::asio::awaitable<void> look_after(Worker worker);
  boost::asio::awaitable<void> look_whether_ended(Worker worker);
  boost::asio::awaitable<void> look_at_member(Worker worker, std::shared_ptr<Looks> looks);
  boost::asio::awaitable<void> look_at_members(api::Trouble trouble);
  boost::asio::awaitable<void> look_at_them(api::Trouble trouble);

  Tools const tools_;
  std::chrono::milliseconds const patience_;
  Verdicts const verdicts_;
  std::set<std::string, std::less<>> looking_whether_ended_;
  using CallsOf = std::pair<std::string, std::uint32_t>;       // a group and its epoch
  std::map<CallsOf, std::optional<api::Trouble>> looking_at_;  // with the last report that came meanwhile
  http::TaskGroup probes_;                                     // end by themselves
};

}  // namespace chorus::coordinator
