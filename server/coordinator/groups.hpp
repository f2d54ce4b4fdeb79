// The groups that stand, and who could be in one. A state machine without clock or sockets.
//
// A change of a group goes: pick members, arrange them, draw an epoch, push it to every member, publish. PUT always
// makes a new epoch, also with the same members: that is how a group is mended after a member was lost or a call within
// it failed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/groups.hpp"
#include "server/coordinator/arrangement.hpp"
#include "server/coordinator/epochs.hpp"
#include "server/coordinator/membership.hpp"
#include "server/coordinator/standing.hpp"

namespace chorus::coordinator {

inline constexpr std::size_t most_members = 256;
inline constexpr std::size_t most_members_measured = 32;  // 496 pairs

// The workers that a PUT asks for, as listed; for `size`, those n ready ones that stand closest together, in order of
// arrival. Where the group may shrink, those of them that are ready. Problems: invalid_field, unknown_worker,
// not_enough_workers, each with a pointer.
[[nodiscard]] http::Checked<std::vector<Worker>> pick_members(api::GroupRequest const& request,
                                                              Membership const& membership);

// Between those of one host, by their places in the list; null if there are none.
[[nodiscard]] std::shared_ptr<GpuWays const> ways_of_gpus(std::vector<Worker> const& members);

// What becomes of a group when an epoch is drawn for these members.
[[nodiscard]] api::Group make_group(std::string name, std::uint32_t epoch, api::GroupRequest requested,
                                    std::vector<Worker> const& as_listed, Arrangement const& arrangement);

[[nodiscard]] inline bool is_measured(api::GroupRequest const& request) { return request.order == "measured"; }
[[nodiscard]] inline bool may_shrink(api::GroupRequest const& request) { return request.on_failure == "shrink"; }
// Whether these incarnations are its members.
[[nodiscard]] bool has_members(api::Group const& group, std::vector<Worker> const& workers);

// A group as it stood when it was looked up: what becomes of it later is another one.
using GroupSnapshot = std::shared_ptr<api::Group const>;

class Groups {
 public:
  [[nodiscard]] std::uint32_t draw_epoch(std::string const& name) { return epochs_.next(name); }
  void epoch_seen(std::string const& name, std::uint32_t epoch) { epochs_.seen(name, epoch); }

  // Every member has taken this epoch. Members that `membership` has lost or replaced meanwhile make it degraded at
  // once. `standing`: what it was arranged by, by rank.
  api::Group const& publish(api::Group group, Membership const& membership, Standing standing = {});

  // Of this epoch of the group, in rank order: without pairs and GPUs if another one has been published since.
  [[nodiscard]] Standing standing(api::Group const& group) const;

  // For the journal, and back.
  [[nodiscard]] std::optional<KeptGroup> kept(std::string_view name) const;
  [[nodiscard]] Epochs const& epochs() const { return epochs_; }
  void restore(std::vector<KeptGroup> groups, std::map<std::string, KeptEpoch> const& epochs, std::uint32_t floor);

  // No member has heard of the epoch that was drawn. Gives a forgotten name as erase().
  std::optional<std::string> drawn_in_vain(std::string const& name);

  // A push reached some members and not others: the group stays as it was, but its members may have left its epoch, so
  // nothing runs in it until it is PUT again. Gives a forgotten name as erase().
  std::optional<std::string> change_failed(std::string_view name, std::uint32_t epoch);

  // This incarnation is no longer a member of anything; gives the groups that became degraded by it.
  std::vector<std::string> worker_lost(std::string_view id, std::uint64_t incarnation);

  // Problems: unknown_group.
  [[nodiscard]] http::Checked<GroupSnapshot> find(std::string_view name) const;
  // Gives it, and the name of a group deleted long ago whose epochs are forgotten instead, if there is one.
  struct Erased {
    api::Group group;
    std::optional<std::string> forgotten;
  };
  [[nodiscard]] http::Checked<Erased> erase(std::string_view name);

  // Nothing, or why no collective may start in the group now: group_broken with the lost ranks.
  [[nodiscard]] std::optional<http::Problem> unusable(api::Group const& group) const;

  [[nodiscard]] std::vector<std::string> names_with(std::string_view worker) const;
  [[nodiscard]] std::map<std::string, GroupSnapshot, std::less<>> const& all() const { return groups_; }

 private:
  // As in a Standing, by rank.
  struct Ways {
    std::shared_ptr<PairLinks const> pairs;
    std::shared_ptr<GpuWays const> gpus;
  };
  static constexpr std::size_t deleted_names_kept = 4096;

  std::map<std::string, GroupSnapshot, std::less<>> groups_;
  std::map<std::string, Ways, std::less<>> ways_;                   // where links are not those of the levels
  std::map<std::string, std::uint32_t, std::less<>> half_changed_;  // the epoch that reached only some
  Epochs epochs_{deleted_names_kept};
};

}  // namespace chorus::coordinator
