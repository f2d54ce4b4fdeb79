#include "server/cli/plans/local_plan.hpp"

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/compression.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "server/cli/text/errc.hpp"
#include "server/planning/explain.hpp"

namespace chorus::cli {
namespace {

Result<std::uint64_t> elements_of(api::PlanRequest const& request, Dtype dtype) {
  if (request.bytes % element_bytes(dtype) == 0) return request.bytes / element_bytes(dtype);
  return Error(CliErrc::bad_value, std::to_string(request.bytes) + " bytes are not a whole number of " + request.dtype);
}

}  // namespace

Result<Planned> plan_locally(api::PlanRequest const& request, model::Constants const& constants) {
  auto const op = parse_op(request.op);
  auto const dtype = parse_dtype(request.dtype);
  if (!op || !dtype)
    return Error(CliErrc::bad_value, "unknown op '" + request.op + "' or dtype '" + request.dtype + "'");
  auto const place = planning::place_of(request, constants, local_ranks_limit);
  if (!place) return Error(CliErrc::bad_value, place.error().detail);
  auto const elements = elements_of(request, *dtype);
  if (!elements) return elements.error();

  auto const compression = planning::compression_of(request.compression, *op, *dtype);
  if (!compression) return Error(CliErrc::bad_value, compression.error().detail);
  model::Wish const wish{.op = *op,
                         .algorithm = request.algorithm,
                         .root = request.root,
                         .arity = request.arity,
                         .shape = request.algorithm_shape,
                         .reproducible = request.reproducible};
  auto answer = planning::plan_in(*place, wish, {{*elements, {}, {}}, *dtype}, *compression, local_ranks_limit);
  if (!answer) return answer.error();
  return Planned{std::move(*answer), static_cast<std::uint32_t>(place->shape.localities.size())};
}

Result<plan::Program> program_of(api::PlanAnswer const& answer, Op op, std::uint32_t ranks, plan::Rank rank) {
  auto const algorithm = algorithms::find(answer.algorithm);
  if (!algorithm) return algorithm.error();
  plan::Spec spec{.op = op, .algorithm = answer.algorithm, .ranks = ranks, .root = answer.root, .arity = answer.arity};
  spec.shape = answer.algorithm_shape;
  return plan::build(**algorithm, spec, rank);
}

}  // namespace chorus::cli
