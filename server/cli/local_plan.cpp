#include "server/cli/local_plan.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/core/locality.hpp"
#include "collectives/model/select.hpp"
#include "collectives/plan/text.hpp"
#include "collectives/verify/verify.hpp"
#include "server/cli/errc.hpp"

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

Result<std::vector<plan::Program>> build_all(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(algorithm, spec, rank);
    if (!program) return program.error();
    programs.push_back(std::move(*program));
  }
  return programs;
}

api::PlannedMove move_of(plan::Program const& program, plan::Instruction const& instruction) {
  return {.op = std::string(name(instruction.op)),
          .rank = program.rank,
          .peer = instruction.peer,
          .chunk = instruction.writes_dst() ? instruction.dst_chunk : instruction.src_chunk,
          .chunks = instruction.chunks};
}

std::vector<std::vector<api::PlannedMove>> rounds_of(std::vector<plan::Program> const& programs) {
  std::vector<std::vector<api::PlannedMove>> rounds;
  for (auto const& program : programs) {
    rounds.resize(std::max(rounds.size(), program.round_begin.size() - 1));
    for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round)
      for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
        rounds[round].push_back(move_of(program, program.instructions[i]));
  }
  return rounds;
}

api::Considered considered(model::Candidate const& candidate) {
  return {.algorithm = candidate.spec.algorithm,
          .root = candidate.spec.root,
          .arity = candidate.spec.arity,
          .predicted_seconds = candidate.cost.seconds,
          .rounds = candidate.cost.rounds,
          .bytes_per_rank = candidate.cost.bytes_per_rank};
}

void add_proof(api::PlanAnswer& answer, std::vector<plan::Program> const& programs) {
  auto const report = verify::check(programs);
  answer.verified = report.ok;
  answer.verification = report.ok ? "every output chunk holds every rank's contribution once" : report.failure;
  if (programs.size() <= drawn_ranks_limit) answer.rounds = rounds_of(programs);
}

}  // namespace

Result<api::PlanAnswer> plan_locally(api::PlanRequest const& request) {
  auto const op = parse_op(request.op);
  auto const dtype = parse_dtype(request.dtype);
  if (!op || !dtype)
    return Error(CliErrc::bad_value, "unknown op '" + request.op + "' or dtype '" + request.dtype + "'");
  auto const localities = localities_of(request);
  if (!localities) return localities.error();
  auto const elements = elements_of(request, *dtype);
  if (!elements) return elements.error();

  model::Wish const wish{.op = *op, .algorithm = request.algorithm, .root = request.root, .arity = request.arity};
  auto const choice = model::select(wish, *localities, *elements, element_bytes(*dtype), model::Constants::defaults());
  if (!choice) return choice.error();
  auto const algorithm = algorithms::find(choice->spec.algorithm);
  if (!algorithm) return algorithm.error();
  auto const programs = build_all(**algorithm, choice->spec);
  if (!programs) return programs.error();

  auto const bound = model::lower_bound(*op, choice->spec.ranks, request.bytes);
  api::PlanAnswer answer;
  answer.algorithm = choice->spec.algorithm;
  answer.root = choice->spec.root;
  answer.arity = choice->spec.arity;
  answer.reason = choice->reason;
  answer.predicted_seconds = choice->cost.seconds;
  answer.lower_bound = {.rounds = bound.rounds, .bytes_per_rank = bound.bytes_per_rank};
  for (auto const& candidate : choice->considered) answer.considered.push_back(considered(candidate));
  add_proof(answer, *programs);
  return answer;
}

Result<plan::Program> program_of(api::PlanAnswer const& answer, Op op, std::uint32_t ranks, plan::Rank rank) {
  auto const algorithm = algorithms::find(answer.algorithm);
  if (!algorithm) return algorithm.error();
  return plan::build(
      **algorithm,
      {.op = op, .algorithm = answer.algorithm, .ranks = ranks, .root = answer.root, .arity = answer.arity}, rank);
}

}  // namespace chorus::cli
