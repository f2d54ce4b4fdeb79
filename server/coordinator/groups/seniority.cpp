#include "server/coordinator/groups/seniority.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace chorus::coordinator {

FormerMembers::FormerMembers(api::Group const* former) : epoch_(former != nullptr ? former->epoch : 0) {
  if (former == nullptr) return;
  for (auto const& member : former->members) by_id_.emplace(member.worker, &member);
}

api::Member const* FormerMembers::find(Worker const& worker) const {
  auto const found = by_id_.find(worker.id);
  bool const is_same = found != by_id_.end() && found->second->incarnation == api::to_hex(worker.incarnation);
  return is_same ? found->second : nullptr;
}

std::uint32_t FormerMembers::member_since(Worker const& worker, std::uint32_t new_epoch) const {
  auto const* member = find(worker);
  return member == nullptr ? new_epoch : member->since_epoch.value_or(epoch_);
}

Seniority seniority_of(std::vector<Worker> const& members, FormerMembers const& former, bool keeps_order) {
  Seniority seniority;
  seniority.order.resize(members.size());
  std::iota(seniority.order.begin(), seniority.order.end(), 0);
  auto const by_id = [&](std::uint32_t index) { return std::string_view(members[index].id); };
  auto const newcomers = std::ranges::partition(
      seniority.order, [&](std::uint32_t index) { return keeps_order && former.find(members[index]) != nullptr; });
  std::ranges::sort(seniority.order.begin(), newcomers.begin(), {},
                    [&](std::uint32_t index) { return former.find(members[index])->rank; });
  std::ranges::sort(newcomers, {}, by_id);
  seniority.survivors = seniority.order.size() - newcomers.size();
  return seniority;
}

}  // namespace chorus::coordinator
