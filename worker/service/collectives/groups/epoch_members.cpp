#include "worker/service/collectives/groups/epoch_members.hpp"

#include <algorithm>

namespace chorus::service {
std::optional<http::Problem> name_members(api::RunRequest& request, GroupEpoch const* epoch) {
  if (epoch == nullptr || epoch->assignment().group.epoch != request.epoch)
    return http::Problem(http::ProblemCode::epoch_fenced,
                         "this worker is not in epoch " + std::to_string(request.epoch) + " of group " + request.group);
  for (auto const& member : epoch->assignment().group.members)
    request.members.push_back({member.rank, member.worker, member.incarnation, member.url});
  if (request.by_worker.value_or(false)) {
    std::ranges::sort(request.members, {}, &api::Peer::worker);
    for (std::uint32_t rank = 0; rank < request.members.size(); ++rank) request.members[rank].rank = rank;
  }
  return std::nullopt;
}

}  // namespace chorus::service
