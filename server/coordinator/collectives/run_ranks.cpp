#include "server/coordinator/collectives/run_ranks.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/op.hpp"
#include "collectives/plan/positions.hpp"

namespace chorus::coordinator {
// The tensors are added in any case. The local algorithm "ring", which does not keep their order, allows any order;
// workers of earlier releases know it.
bool may_add_in_any_order(api::CollectiveRequest const& request, std::string const& devices) {
  auto const op = parse_op(request.op);
  return op && reduces(*op) && !request.reproducible && request.local_algorithm == "auto" &&
         devices.find(',') != std::string::npos && devices.find("cpu") == std::string::npos;
}

namespace {

// A request for every member that names every member grows with the square: above this, members know each other from
// the group's epoch. Workers of release 0.1.0, whose groups are not larger, want the names.
constexpr std::size_t named_members_max = 256;

// None where the algorithm takes the ranks in their order.
std::optional<std::vector<std::uint32_t>> positions_in(api::Group const& group, api::RunRequest const& request) {
  auto const op = parse_op(request.op);
  auto const algorithm = algorithms::find(request.algorithm);
  if (!group.by_position || !op || algorithm.has_error()) return std::nullopt;
  plan::Spec const spec{.op = *op,
                        .algorithm = request.algorithm,
                        .ranks = static_cast<std::uint32_t>(group.members.size()),
                        .arity = request.arity,
                        .in_place = request.in_place,
                        .shape = request.algorithm_shape};
  auto positions = plan::with_positions(*algorithm.value(), spec, *group.by_position).by_position;
  return positions.empty() ? std::nullopt : std::optional(std::move(positions));
}

// Workers are told what was decided.
std::optional<api::Compression> sent(api::Collective const& collective) {
  auto compression = collective.request.compression;
  if (!compression || compression->format != "auto") return compression;
  if (!collective.wire_format) return std::nullopt;
  return api::Compression{*collective.wire_format, compression->between};
}

}  // namespace

RunRanks::RunRanks(api::Group const& group, model::Wish const& wish)
    : member_of_(group.members.size()), run_rank_(group.members.size()) {
  std::iota(member_of_.begin(), member_of_.end(), 0);
  by_worker_ = wish.reproducible && reduces(wish.op) && wish.op != Op::reduce_scatter;
  if (by_worker_)
    std::ranges::sort(member_of_, {}, [&group](std::uint32_t rank) { return group.members[rank].worker; });
  for (std::uint32_t r = 0; r < member_of_.size(); ++r) run_rank_[member_of_[r]] = r;
}

api::RunRequest RunRanks::request(std::uint32_t rank, api::Group const& group, api::Collective const& collective,
                                  Admitted const& admitted, std::string token, std::uint64_t timeout_ms) const {
  api::RunRequest request;
  request.run = collective.run;
  request.group = group.name;
  request.epoch = group.epoch;
  request.token = std::move(token);
  request.op = collective.request.op;
  request.algorithm = collective.algorithm;
  request.root = run_rank_[collective.root];
  request.arity = collective.arity;
  request.algorithm_shape = collective.algorithm_shape;
  request.rank = run_rank_[rank];
  bool const names_members = member_of_.size() <= named_members_max;
  if (!names_members) request.by_worker = by_worker_;
  for (std::uint32_t r = 0; names_members && r < member_of_.size(); ++r) {
    auto const& member = group.members[member_of_[r]];
    request.members.push_back({r, member.worker, member.incarnation, member.url});
  }
  request.tensor = collective.request.tensor;
  request.version = admitted.versions[rank];
  request.dtype = collective.dtype;
  auto const& part = admitted.parts[rank];
  request.elements = part.sizes.elements;
  request.counts = part.sizes.counts;
  request.receive_counts = part.sizes.receive_counts;
  request.result = part.result;
  request.parts = admitted.tensors[rank];
  request.contributions = admitted.contributions;
  request.local_algorithm = collective.local_algorithm.value_or("centralized");
  if (request.local_algorithm == "auto")
    request.local_algorithm =
        may_add_in_any_order(collective.request, admitted.devices[rank].value_or("")) ? "ring" : "centralized";
  request.reduce = collective.request.reduce;
  request.compression = sent(collective);
  request.error_feedback = collective.request.error_feedback;
  request.in_place = collective.request.in_place;
  if (names_members) request.by_position = positions_in(group, request);
  request.schedule = collective.request.schedule;
  if (!request.schedule.segment_bytes)
    request.schedule.segment_bytes = group.segment_bytes.value_or(api::default_segment_bytes);
  request.timeout_ms = timeout_ms;
  return request;
}

http::Problem RunRanks::in_group_ranks(http::Problem problem) const {
  for (auto& rank : problem.ranks)
    if (rank < member_of_.size()) rank = member_of_[rank];
  std::ranges::sort(problem.ranks);
  return problem;
}

}  // namespace chorus::coordinator
