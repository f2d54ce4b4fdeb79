// The members and groups as they are now, and the conversations with workers that change them.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/groups.hpp"
#include "server/coordinator/lock_table.hpp"
#include "server/coordinator/membership.hpp"
#include "server/coordinator/planner.hpp"
#include "server/coordinator/records.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

struct ClusterPatience {
  std::chrono::milliseconds probe{2000};       // for a joining worker to answer at the address that it gave
  std::chrono::milliseconds suspicion{1000};   // for a worker whose connection broke
  std::chrono::milliseconds assignment{5000};  // for the members to take a new epoch
  std::chrono::milliseconds measuring{5000};   // of one link of a worker that has joined
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

  // Who wants to know; any of them may be empty.
  struct Listeners {
    OnLost lost;
    std::function<void(std::string const& worker, std::string const& incarnation)> left;  // by its own will
    std::function<void(std::string const& group)> group_changed;                          // it has a new epoch
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
  // Problems as Membership::join, and worker_unreachable if nobody answers at the address.
  boost::asio::awaitable<http::Checked<Joined>> join(api::JoinRequest request);
  [[nodiscard]] http::Checked<api::LeaseAnswer> renew(std::string_view id, api::LeaseRequest const& request);
  [[nodiscard]] std::optional<http::Problem> leave(std::string_view id, std::optional<std::string_view> incarnation);

  // Makes a new epoch, also for the same members, and returns when every member has taken it. Problems as pick_members;
  // worker_unreachable or what the member answered, naming the member: the group then keeps its former epoch and is
  // degraded, for its members may have left it.
  boost::asio::awaitable<http::Checked<api::Group>> put_group(std::string name, api::GroupRequest request);
  [[nodiscard]] std::optional<http::Problem> erase_group(std::string_view name);

  // A connection to that incarnation broke: if its address refuses connections it is lost, without waiting for the
  // lease.
  void suspect(std::string const& id, std::string const& incarnation);

  [[nodiscard]] Membership const& membership() const { return membership_; }
  [[nodiscard]] Groups const& groups() const { return groups_; }
  [[nodiscard]] http::Checked<api::Worker> find(std::string_view id) const;
  [[nodiscard]] api::Worker show(Worker const& worker) const;
  // What workers measured when they joined, the newest last.
  [[nodiscard]] std::vector<api::MeasuredLink> const& links() const { return links_; }

 private:
  struct Change;

  boost::asio::awaitable<void> watch_leases();
  boost::asio::awaitable<void> look_after(Worker worker);
  boost::asio::awaitable<void> measure_links(Worker worker);
  boost::asio::awaitable<void> change_group(std::shared_ptr<Change> change);
  boost::asio::awaitable<http::Checked<api::Group>> make_epoch(std::shared_ptr<Change> change);
  boost::asio::awaitable<std::optional<http::Problem>> push(std::shared_ptr<Change> change, api::Group group);
  boost::asio::awaitable<void> push_to(std::shared_ptr<Change> change, api::GroupAssignment assignment,
                                       api::Member member, TimePoint deadline);
  void lose(Worker const& worker, std::string const& why);
  void count_members();

  Tools const tools_;
  ClusterPatience const patience_;
  Membership membership_;
  Groups groups_;
  std::vector<api::MeasuredLink> links_;
  Listeners listeners_;
  bool stopping_ = false;
  http::TaskGroup watch_;    // ends by cancellation
  http::TaskGroup changes_;  // end by themselves
};

}  // namespace chorus::coordinator
