// Members of placements as the membership knows them now, and those that may take shards.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/coordinator/cluster/cluster.hpp"

namespace chorus::coordinator {

[[nodiscard]] inline api::Member as_member(Worker const& worker) {
  return {0, worker.id, api::to_hex(worker.incarnation), worker.url, worker.locality, {}};
}

[[nodiscard]] inline bool is_ready(Membership const& membership, api::Member const& member) {
  auto const* worker = membership.find(member.worker);
  return worker != nullptr && worker->ready && api::to_hex(worker->incarnation) == member.incarnation;
}

[[nodiscard]] inline bool is_incarnation(std::optional<api::Member> const& placed, std::string const& worker,
                                         std::string const& incarnation) {
  return placed && placed->worker == worker && placed->incarnation == incarnation;
}

[[nodiscard]] inline bool is_among(std::vector<api::Member> const& members, api::Member const& member) {
  return std::ranges::any_of(members, [&](auto const& other) {
    return other.worker == member.worker && other.incarnation == member.incarnation;
  });
}

// The workers that may take shards. Used on one thread. The cluster outlives this.
class Candidates {
 public:
  explicit Candidates(Cluster const& cluster) : cluster_(cluster) {}

  // Returns the ready members of the group that are not about to leave.
  [[nodiscard]] std::vector<api::Member> of(std::string const& group) const {
    auto const found = cluster_.groups().find(group);
    std::vector<api::Member> members;
    if (found.has_value())
      std::ranges::copy_if(found.value()->members, std::back_inserter(members), [this](api::Member const& member) {
        return is_ready(cluster_.membership(), member) && !leaving_.contains({member.worker, member.incarnation});
      });
    return members;
  }

  // This incarnation is about to leave, until stay().
  void leave(std::string const& worker, std::string const& incarnation) { leaving_.insert({worker, incarnation}); }
  void stay(std::string const& worker, std::string const& incarnation) { leaving_.erase({worker, incarnation}); }

 private:
  Cluster const& cluster_;
  std::set<std::pair<std::string, std::string>> leaving_;  // worker, incarnation
};

}  // namespace chorus::coordinator
