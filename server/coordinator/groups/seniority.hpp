// The order in which members get ranks: survivors of the former epoch first, then newcomers by id.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "server/coordinator/membership/membership.hpp"

namespace chorus::coordinator {

struct Seniority {
  std::vector<std::uint32_t> order;  // indices in the list of members; empty: as listed
  std::size_t survivors = 0;         // number of survivors; they are first in `order` and become the first ranks
  bool ranks_as_listed = false;      // then `order` is of positions, and there are no survivors

  friend bool operator==(Seniority const&, Seniority const&) = default;
};

// The members of the previous epoch. An id with another incarnation is a newcomer.
class FormerMembers {
 public:
  // `former`: null if there is no previous epoch; outlives the object.
  explicit FormerMembers(api::Group const* former);
  [[nodiscard]] api::Member const* find(Worker const& worker) const;  // null for a newcomer
  // Returns the epoch since which the worker has been a member without interruption, or `new_epoch`.
  [[nodiscard]] std::uint32_t member_since(Worker const& worker, std::uint32_t new_epoch) const;

 private:
  std::uint32_t epoch_;
  std::map<std::string_view, api::Member const*> by_id_;
};

// Survivors come in their former rank order, so that rank 0 has the group's state if any survivor is left. Without
// `keeps_order` (a PUT with another order, or a newly measured one) all members are ordered by id.
[[nodiscard]] Seniority seniority_of(std::vector<Worker> const& members, FormerMembers const& former, bool keeps_order);

}  // namespace chorus::coordinator
