#include "server/cli/local_plan.hpp"

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/core/locality.hpp"
#include "collectives/model/select.hpp"
#include "server/cli/errc.hpp"
#include "server/planning/explain.hpp"

namespace chorus::cli {
namespace {

Result<std::vector<Locality>> localities_of(api::PlanRequest const& request) {
  std::vector<Locality> localities;
  for (auto const& text : request.localities.value_or(std::vector<std::string>{})) {
    auto const locality = parse_locality(text);
    if (!locality) return locality.error();
    localities.push_back(*locality);
  }
  auto const given = static_cast<std::uint32_t>(localities.size());
  auto const ranks = request.ranks.value_or(given);
  if (ranks < 1 || ranks > local_ranks_limit)
    return Error(CliErrc::bad_value, "a plan without a group is for 1 to " + std::to_string(local_ranks_limit) +
                                         " ranks, not " + std::to_string(ranks));
  if (given != 0 && given != ranks)
    return Error(CliErrc::bad_value, "there are " + std::to_string(ranks) + " ranks and " + std::to_string(given) +
                                         " localities; give one for every rank, or none");
  localities.resize(ranks);
  return localities;
}

Result<std::uint64_t> elements_of(api::PlanRequest const& request, Dtype dtype) {
  if (request.bytes % element_bytes(dtype) == 0) return request.bytes / element_bytes(dtype);
  return Error(CliErrc::bad_value, std::to_string(request.bytes) + " bytes are not a whole number of " + request.dtype);
}

}  // namespace

Result<api::PlanAnswer> plan_locally(api::PlanRequest const& request, model::Constants const& constants) {
  auto const op = parse_op(request.op);
  auto const dtype = parse_dtype(request.dtype);
  if (!op || !dtype)
    return Error(CliErrc::bad_value, "unknown op '" + request.op + "' or dtype '" + request.dtype + "'");
  auto const localities = localities_of(request);
  if (!localities) return localities.error();
  auto const elements = elements_of(request, *dtype);
  if (!elements) return elements.error();

  model::Wish const wish{.op = *op,
                         .algorithm = request.algorithm,
                         .root = request.root,
                         .arity = request.arity,
                         .shape = request.algorithm_shape,
                         .reproducible = request.reproducible};
  auto const choice = model::select(wish, *localities, *elements, element_bytes(*dtype), constants);
  if (!choice) return choice.error();
  return planning::explain(*choice, request.bytes, local_ranks_limit);
}

Result<plan::Program> program_of(api::PlanAnswer const& answer, Op op, std::uint32_t ranks, plan::Rank rank) {
  auto const algorithm = algorithms::find(answer.algorithm);
  if (!algorithm) return algorithm.error();
  plan::Spec spec{.op = op, .algorithm = answer.algorithm, .ranks = ranks, .root = answer.root, .arity = answer.arity};
  spec.shape = answer.algorithm_shape;
  return plan::build(**algorithm, spec, rank);
}

}  // namespace chorus::cli
