#include "server/coordinator/plan_preview.hpp"

#include "collectives/core/dtype.hpp"
#include "server/coordinator/identifier.hpp"
#include "server/coordinator/order.hpp"
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
  auto const wish = check_wish(
      {request.op, request.algorithm, request.root, request.arity, request.algorithm_shape, request.reproducible});
  if (wish.has_error()) return wish.error();
  if (auto problem = check_root(request.root, ranks)) return std::move(*problem);
  if (auto problem = check_shape(wish.value(), ranks)) return std::move(*problem);
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype)
    return invalid_field("/dtype",
                         "unknown dtype; there are f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8");
  auto const size = element_bytes(*dtype);
  if (request.bytes % size != 0)
    return invalid_field("/bytes", std::to_string(request.bytes) + " is not a multiple of the " + std::to_string(size) +
                                       " bytes of " + request.dtype);
  auto answer = planning::plan_in(place.value(), wish.value(), request.bytes / size, size, most_ranks_verified);
  // What else could be wrong has been looked at.
  if (answer.has_error()) return invalid_field("/algorithm", answer.error().detail);
  return std::move(answer.value());
}

}  // namespace chorus::coordinator
