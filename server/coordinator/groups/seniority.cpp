#include "server/coordinator/groups/seniority.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace chorus::coordinator {
namespace {

api::Member const* former_member(Worker const& worker, api::Group const* former) {
  if (former == nullptr) return nullptr;
  auto const found = std::ranges::find_if(former->members, [&](api::Member const& member) {
    return member.worker == worker.id && member.incarnation == api::to_hex(worker.incarnation);
  });
  return found != former->members.end() ? &*found : nullptr;
}

}  // namespace

Seniority seniority_of(std::vector<Worker> const& members, api::Group const* former, bool keeps_order) {
  Seniority seniority;
  seniority.order.resize(members.size());
  std::iota(seniority.order.begin(), seniority.order.end(), 0);
  auto const by_id = [&](std::uint32_t index) { return std::string_view(members[index].id); };
  auto const newcomers = std::ranges::partition(seniority.order, [&](std::uint32_t index) {
    return keeps_order && former_member(members[index], former) != nullptr;
  });
  std::ranges::sort(seniority.order.begin(), newcomers.begin(), {},
                    [&](std::uint32_t index) { return former_member(members[index], former)->rank; });
  std::ranges::sort(newcomers, {}, by_id);
  seniority.survivors = seniority.order.size() - newcomers.size();
  return seniority;
}

std::uint32_t member_since(Worker const& worker, api::Group const* former, std::uint32_t epoch) {
  auto const* member = former_member(worker, former);
  if (member == nullptr) return epoch;
  return member->since_epoch.value_or(former->epoch);
}

}  // namespace chorus::coordinator
