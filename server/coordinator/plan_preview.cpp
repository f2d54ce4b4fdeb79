#include "server/coordinator/plan_preview.hpp"

#include "collectives/core/dtype.hpp"
#include "collectives/model/select.hpp"
#include "server/coordinator/groups.hpp"
#include "server/coordinator/identifier.hpp"
#include "server/coordinator/order.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {
http::Checked<std::vector<Locality>> localities_of(api::PlanRequest const& request) {
  auto const count = request.localities ? request.localities->size() : request.ranks.value_or(0);
  if (request.localities && request.ranks && *request.ranks != count)
    return invalid_field("/localities",
                         std::to_string(count) + " localities for " + std::to_string(*request.ranks) + " ranks");
  auto const pointer = request.localities ? "/localities" : "/ranks";
  if (count == 0 || count > most_members)
    return invalid_field(pointer, std::to_string(count) + " ranks; expected 1 to " + std::to_string(most_members));
  if (!request.localities) return std::vector<Locality>(count);
  std::vector<Locality> localities;
  for (auto const& text : *request.localities) {
    auto const at = "/localities/" + std::to_string(localities.size());
    if (!is_showable(text, 512)) return invalid_field(at, "expected at most 512 bytes without control characters");
    auto locality = parse_locality(text);
    if (locality.has_error()) return invalid_field(at, locality.error().detail);
    localities.push_back(std::move(locality.value()));
  }
  return localities;
}

http::Checked<api::PlanAnswer> preview_plan(api::PlanRequest const& request, std::span<Locality const> in_rank_order,
                                            model::Constants const& constants) {
  auto const wish = check_wish(
      {request.op, request.algorithm, request.root, request.arity, request.algorithm_shape, request.reproducible});
  if (wish.has_error()) return wish.error();
  if (auto problem = check_root(request.root, in_rank_order.size())) return std::move(*problem);
  if (auto problem = check_shape(wish.value(), in_rank_order.size())) return std::move(*problem);
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype)
    return invalid_field("/dtype",
                         "unknown dtype; there are f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8");
  auto const size = element_bytes(*dtype);
  if (request.bytes % size != 0)
    return invalid_field("/bytes", std::to_string(request.bytes) + " is not a multiple of the " + std::to_string(size) +
                                       " bytes of " + request.dtype);
  auto const choice = model::select(wish.value(), in_rank_order, request.bytes / size, size, constants);
  if (choice.has_error()) return invalid_field("/algorithm", choice.error().detail);
  auto answer = planning::explain(choice.value(), request.bytes, most_ranks_verified);
  if (answer.has_error()) return http::Problem(http::ProblemCode::internal, answer.error().detail);
  return std::move(answer.value());
}

}  // namespace chorus::coordinator
