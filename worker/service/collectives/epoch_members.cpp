#include "worker/service/collectives/epoch_members.hpp"

#include <algorithm>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/op.hpp"
#include "collectives/plan/positions.hpp"

namespace chorus::service {
namespace {

// None where the algorithm takes the ranks in their order.
std::optional<std::vector<plan::Rank>> positions_of(api::RunRequest const& request, api::Group const& group) {
  auto const op = parse_op(request.op);
  auto const algorithm = algorithms::find(request.algorithm);
  if (!group.by_position || !op || !algorithm) return std::nullopt;
  plan::Spec spec{.op = *op,
                  .algorithm = request.algorithm,
                  .ranks = static_cast<std::uint32_t>(group.members.size()),
                  .arity = request.arity,
                  .in_place = request.in_place,
                  .shape = request.algorithm_shape};
  auto positions = plan::with_positions(**algorithm, std::move(spec), *group.by_position).by_position;
  return positions.empty() ? std::nullopt : std::optional(std::move(positions));
}

}  // namespace

std::optional<http::Problem> name_members(api::RunRequest& request, GroupEpoch const* epoch) {
  if (epoch == nullptr || epoch->assignment().group.epoch != request.epoch)
    return http::Problem(http::ProblemCode::epoch_fenced,
                         "this worker is not in epoch " + std::to_string(request.epoch) + " of group " + request.group);
  auto const& group = epoch->assignment().group;
  for (auto const& member : group.members)
    request.members.push_back({member.rank, member.worker, member.incarnation, member.url});
  if (request.by_worker.value_or(false)) {
    std::ranges::sort(request.members, {}, &api::Peer::worker);
    for (std::uint32_t rank = 0; rank < request.members.size(); ++rank) request.members[rank].rank = rank;
  }
  request.by_position = positions_of(request, group);
  return std::nullopt;
}

}  // namespace chorus::service
