// The backups of an owner in the last placement.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "worker/parameters/serving/follower.hpp"

namespace chorus::parameters {

// Used on the control thread.
class Followers {
 public:
  using Ptr = std::shared_ptr<Follower>;
  using List = std::list<Ptr>;

  // Replaces the backups by those of a placement. If the placement continues the one before, backups in both are kept.
  // Returns the new ones, which must be filled. path: of the shard, "/v1/parameters/w/shards/0".
  [[nodiscard]] std::vector<Ptr> place(http::PeerClient client, api::ShardAssignment const& assignment,
                                       std::string const& path, std::uint32_t epoch);
  // Marks all as dropped, which ends their work.
  void drop() const;
  void clear() { list_.clear(); }

  [[nodiscard]] List const& list() const { return list_; }
  [[nodiscard]] bool any_in_step() const;
  [[nodiscard]] bool any_is_wanting() const;  // waits for an image, or to come into step
  [[nodiscard]] std::size_t behind() const;   // number of backups that are not in step
  // Returns true if pushes must wait for a backup that is being filled. value_bytes: of the shard.
  [[nodiscard]] bool backlog_is_long(std::uint64_t value_bytes) const;
  // Returns a backup in step that has not taken the push at this position; null if all have.
  [[nodiscard]] Ptr in_step_without(std::uint64_t position) const;
  // Adds a push to the backlogs of the backups that are not in step.
  void add_to_backlogs(LogEntry const& entry) const;

 private:
  List list_;
};

}  // namespace chorus::parameters
