#include "server/coordinator/admission/plan_preview.hpp"

#include "collectives/core/dtype.hpp"
#include "collectives/core/nearest_name.hpp"
#include "server/coordinator/admission/order.hpp"
#include "server/coordinator/text/identifier.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {
namespace {

http::Checked<planning::Place> place_for(api::PlanRequest const& request, std::optional<Standing> of_group,
                                         model::Constants const& constants) {
  if (!of_group) return planning::place_of(request, constants, plan::max_ranks);
  if (request.ranks || request.localities || request.topology || request.links)
    return invalid_field("/group", "either a group, or ranks, localities, a topology and links");
  return place_of(std::move(*of_group), constants);
}

}  // namespace

http::Checked<api::PlanAnswer> preview_plan(api::PlanRequest const& request, std::optional<Standing> of_group,
                                            model::Constants const& constants) {
  auto const place = place_for(request, std::move(of_group), constants);
  if (place.has_error()) return place.error();
  auto const ranks = place.value().shape.localities.size();
  auto const format = check_compression(request.compression, request.op, ReduceOp::sum, request.algorithm);
  if (format.has_error()) return format.error();
  auto const wish = check_wish({request.op, request.algorithm, request.root, request.arity, request.algorithm_shape,
                                request.reproducible, format.value()});
  if (wish.has_error()) return wish.error();
  if (auto problem = check_root(request.root, ranks)) return std::move(*problem);
  if (auto problem = check_shape(wish.value(), ranks)) return std::move(*problem);
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype) return invalid_field("/dtype", unknown_name("dtype", request.dtype, names_of(all_dtypes)));
  auto const size = element_bytes(*dtype);
  if (request.bytes % size != 0)
    return invalid_field("/bytes", std::to_string(request.bytes) + " is not a multiple of the " + std::to_string(size) +
                                       " bytes of " + request.dtype);
  if (auto problem = check_format(format.value(), *dtype)) return std::move(*problem);
  planning::Vector const vector{{request.bytes / size, {}, {}}, *dtype};
  auto answer = planning::plan_in(place.value(), wish.value(), vector, format.value(), most_ranks_verified);
  // All other possible errors have been checked.
  if (answer.has_error()) return invalid_field(planning::refused_member(wish.value()), answer.error().detail);
  return std::move(answer.value());
}

}  // namespace chorus::coordinator
