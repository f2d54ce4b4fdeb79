// The groups and the choice of their members. A state machine without clock or sockets.
//
// A change of a group has these steps: pick members, arrange them, draw an epoch, push it to every member, publish. PUT
// always makes a new epoch, also with the same members: this repairs a group after the loss of a member or a failed
// call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "server/coordinator/groups/epochs.hpp"
#include "server/coordinator/groups/rank_assignment.hpp"
#include "server/coordinator/membership/membership.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

inline constexpr std::size_t most_members = 4096;
inline constexpr std::size_t most_members_measured = 32;  // 496 pairs

// Returns the workers that a PUT lists or, for `size`, the n ready workers that are closest together, in order of
// arrival. `former`: the previous epoch, null for a new group, whose choice depends only on ids and localities. If the
// group may shrink, only ready workers are returned. Problems: invalid_field, unknown_worker, not_enough_workers, each
// with a pointer.
[[nodiscard]] http::Checked<std::vector<Worker>> pick_members(api::GroupRequest const& request,
                                                              Membership const& membership, api::Group const* former);

// Returns the GPU links between members of one host, by their indices in the list; null if there are none, or more
// members than a link matrix may have.
[[nodiscard]] std::shared_ptr<GpuWays const> ways_of_gpus(std::vector<Worker> const& members);

// Makes the group for a new epoch with these members. `former`: the previous epoch, null if there is none.
[[nodiscard]] api::Group make_group(std::string name, std::uint32_t epoch, api::GroupRequest requested,
                                    std::vector<Worker> const& as_listed, RankAssignment const& rank_assignment,
                                    api::Group const* former = nullptr);

[[nodiscard]] inline bool is_measured(api::GroupRequest const& request) { return request.order == "measured"; }
[[nodiscard]] inline bool is_listed(api::GroupRequest const& request) { return request.order == "listed"; }
[[nodiscard]] inline bool may_shrink(api::GroupRequest const& request) { return request.on_failure == "shrink"; }
// True if exactly these incarnations are its members.
[[nodiscard]] bool has_members(api::Group const& group, std::vector<Worker> const& workers);

// A group as it was at the time of the lookup. What Groups holds alone it changes in place.
using GroupSnapshot = std::shared_ptr<api::Group const>;

class Groups {
 public:
  [[nodiscard]] std::uint32_t draw_epoch(std::string const& name);
  // Draws the number of the next epoch ahead, because the present one cannot go on: then the journal shows that the
  // group needs another one. False if a later number than that of the present epoch was drawn before.
  bool draw_ahead(std::string_view name);
  // True if a later number than that of the published epoch was drawn: members may have left this epoch.
  [[nodiscard]] bool is_left(api::Group const& group) const {
    return epochs_.knows(group.name) && epochs_.kept(group.name).last > group.epoch;
  }
  void epoch_seen(std::string const& name, std::uint32_t epoch) { epochs_.seen(name, epoch); }

  // Publishes an epoch that every member has taken. If `membership` has lost or replaced a member in the meantime, the
  // group is degraded at once. `standing`: the standing by rank for which the group was arranged.
  api::Group const& publish(api::Group group, Membership const& membership, Standing standing = {});

  // Returns the standing of this epoch in rank order, with its positions; without pairs and GPUs if another epoch has
  // been published since.
  [[nodiscard]] Standing standing(api::Group const& group) const;

  // Returns the group's row for the journal.
  [[nodiscard]] std::optional<JournalGroup> kept(std::string_view name) const;
  [[nodiscard]] Epochs const& epochs() const { return epochs_; }
  void restore(std::vector<JournalGroup> groups, std::map<std::string, JournalEpoch> const& epochs,
               std::uint32_t floor);

  // No member has heard of the drawn epoch. Returns a forgotten name like erase().
  std::optional<std::string> drawn_in_vain(std::string const& name);

  // A push reached only some members: the group stays as it was, but members may have left its epoch, so nothing runs
  // in it until the next PUT. Returns a forgotten name like erase().
  std::optional<std::string> change_failed(std::string_view name, std::uint32_t epoch);

  // This incarnation leaves all groups. Returns the groups that became degraded.
  std::vector<std::string> worker_lost(std::string_view id, std::uint64_t incarnation);

  // Problems: unknown_group.
  [[nodiscard]] http::Checked<GroupSnapshot> find(std::string_view name) const;
  // The deleted group, and the name of a group deleted long ago whose epochs are now forgotten, if any.
  struct Erased {
    api::Group group;
    std::optional<std::string> forgotten;
  };
  [[nodiscard]] http::Checked<Erased> erase(std::string_view name);

  // Returns the reason if no collective may start in the group now: group_broken with the lost ranks.
  [[nodiscard]] std::optional<http::Problem> unusable(api::Group const& group) const;

  [[nodiscard]] std::vector<std::string> names_with(std::string_view worker) const;
  [[nodiscard]] std::map<std::string, GroupSnapshot, std::less<>> const& all() const { return groups_; }

 private:
  // Links by rank, as in a Standing.
  struct Ways {
    std::shared_ptr<PairLinks const> pairs;
    std::shared_ptr<GpuWays const> gpus;
  };
  static constexpr std::size_t deleted_names_kept = 4096;

  void remember_members(api::Group const& group);
  void forget_members(api::Group const& group);

  std::map<std::string, GroupSnapshot, std::less<>> groups_;
  // Groups by their members: every list of workers and every status asks for them.
  std::map<std::string, std::set<std::string>, std::less<>> names_by_worker_;
  std::map<std::string, Ways, std::less<>> ways_;                   // groups with other links than those of the levels
  std::map<std::string, std::uint32_t, std::less<>> half_changed_;  // the epoch that reached only some members
  std::map<std::string, std::uint32_t, std::less<>> drawn_ahead_;
  Epochs epochs_{deleted_names_kept};
};

}  // namespace chorus::coordinator
