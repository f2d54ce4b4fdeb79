// The backups of an owner in the last placement: fills them, brings them into step, and sends them every push.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "worker/parameters/serving/copy/shard_copy.hpp"
#include "worker/parameters/serving/replication/follower.hpp"

namespace chorus::parameters {

// Used on the control thread. The objects that it refers to outlive it; `tasks` is joined before.
class Followers {
 public:
  Followers(ShardTools const& tools, ShardCopy& copy, Tenure& tenure, http::TaskGroup& tasks)
      : tools_(tools), copy_(copy), tenure_(tenure), tasks_(tasks) {}

  // Replaces the backups by those of a placement. If the placement continues the one before, backups in both are kept.
  // Begins to fill new ones, unless the placement is fresh.
  void place(api::ShardAssignment const& assignment);
  // At the start of a fresh shard, which all copies have.
  void start_in_step();
  // Marks all as dropped, which ends their work.
  void drop() const;
  // Drops and removes all.
  void clear();

  // Sends a push to all backups in step. True if all have it and the role has not changed. A backup sends to none.
  boost::asio::awaitable<bool> send(LogEntry entry);
  // Adds an applied push to the backlogs of the backups that are not in step.
  void add_to_backlogs(LogEntry const& entry) const;
  // Called between two pushes: takes images and brings backups into step, so that no push is missed.
  boost::asio::awaitable<void> look_after();

  [[nodiscard]] bool any_in_step() const;
  [[nodiscard]] bool any_is_wanting() const;               // waits for an image, or to come into step
  [[nodiscard]] bool backlog_is_long() const;              // pushes must wait for a backup that is being filled
  [[nodiscard]] std::size_t behind() const;                // number of backups that are not in step
  [[nodiscard]] std::vector<std::string> in_step() const;  // workers

 private:
  using Ptr = std::shared_ptr<Follower>;
  using List = std::list<Ptr>;

  [[nodiscard]] std::vector<Ptr> replace(api::ShardAssignment const& assignment);
  [[nodiscard]] Ptr in_step_without(std::uint64_t position) const;
  boost::asio::awaitable<void> give_image(Ptr follower);
  boost::asio::awaitable<void> bring_into_step(Ptr follower);
  boost::asio::awaitable<void> fill(Ptr follower);
  boost::asio::awaitable<Follower::Sent> catch_up(Ptr follower);
  void report(Follower const& follower) const;

  ShardTools const& tools_;
  ShardCopy& copy_;
  Tenure& tenure_;
  http::TaskGroup& tasks_;
  List list_;
};

}  // namespace chorus::parameters
