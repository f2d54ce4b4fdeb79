// The order in which members get ranks: survivors of the former epoch first, then newcomers by id.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "http/api/groups.hpp"
#include "server/coordinator/membership/membership.hpp"

namespace chorus::coordinator {

struct Seniority {
  std::vector<std::uint32_t> order;  // indices in the list of members; empty: as listed
  std::size_t survivors = 0;         // number of survivors; they are first in `order` and become the first ranks
  bool ranks_as_listed = false;      // then `order` is of positions, and there are no survivors

  friend bool operator==(Seniority const&, Seniority const&) = default;
};

// `former`: the previous epoch, null if there is none; an id with another incarnation is a newcomer. Survivors come in
// their former rank order, so that rank 0 has the group's state if any survivor is left. Without `keeps_order` (a PUT
// with another order, or a newly measured one) all members are ordered by id.
[[nodiscard]] Seniority seniority_of(std::vector<Worker> const& members, api::Group const* former, bool keeps_order);

// Returns the epoch since which the worker has been a member without interruption: one of the former group's, or
// `epoch`.
[[nodiscard]] std::uint32_t member_since(Worker const& worker, api::Group const* former, std::uint32_t epoch);

}  // namespace chorus::coordinator
