#include "server/coordinator/plan_preview.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/model/select.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/verify/verify.hpp"
#include "server/coordinator/groups.hpp"
#include "server/coordinator/identifier.hpp"
#include "server/coordinator/order.hpp"
#include "server/coordinator/record.hpp"

namespace chorus::coordinator {
namespace {

std::string_view name(plan::Opcode op) {
  switch (op) {
    case plan::Opcode::send:
      return "send";
    case plan::Opcode::recv:
      return "recv";
    case plan::Opcode::recv_reduce:
      return "recv_reduce";
    case plan::Opcode::copy:
      return "copy";
    case plan::Opcode::reduce:
      return "reduce";
  }
  return "";
}

Result<std::vector<plan::Program>> build_all(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(algorithm, spec, rank);
    if (program.has_error()) return program.error();
    programs.push_back(std::move(program.value()));
  }
  return programs;
}

void draw(plan::Program const& program, std::vector<std::vector<api::PlannedMove>>& rounds) {
  auto const count = program.round_begin.empty() ? 0 : program.round_begin.size() - 1;
  if (rounds.size() < count) rounds.resize(count);
  for (std::size_t round = 0; round < count; ++round)
    for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i) {
      auto const& instruction = program.instructions[i];
      auto const chunk = instruction.writes_dst() ? instruction.dst_chunk : instruction.src_chunk;
      rounds[round].push_back(
          {std::string(name(instruction.op)), program.rank, instruction.peer, chunk, instruction.chunks});
    }
}

Status verify_and_draw(plan::Spec const& spec, api::PlanAnswer& answer) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (algorithm.has_error()) return algorithm.error();
  auto const programs = build_all(*algorithm.value(), spec);
  if (programs.has_error()) return programs.error();
  auto report = verify::check(programs.value());
  answer.verified = report.ok;
  answer.verification =
      report.ok ? "every output chunk holds every rank's contribution once" : std::move(report.failure);
  for (auto const& program : programs.value()) draw(program, answer.rounds);
  return ok();
}

}  // namespace

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
  auto const wish = check_wish(request.op, request.algorithm, request.root, request.arity);
  if (wish.has_error()) return wish.error();
  if (auto problem = check_root(request.root, in_rank_order.size())) return std::move(*problem);
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
  api::PlanAnswer answer;
  auto const& spec = choice.value().spec;
  answer.algorithm = spec.algorithm;
  answer.root = spec.root;
  answer.arity = spec.arity;
  answer.reason = choice.value().reason;
  answer.predicted_seconds = choice.value().cost.seconds;
  answer.considered = show_considered(choice.value());
  answer.lower_bound = show_lower_bound(spec.op, spec.ranks, request.bytes);
  if (in_rank_order.size() > most_ranks_verified) {
    answer.verification = "not verified here above 64 ranks; chorus verify does it";
    return answer;
  }
  if (auto const status = verify_and_draw(spec, answer); status.has_error())
    return http::Problem(http::ProblemCode::internal, status.error().detail);
  return answer;
}

}  // namespace chorus::coordinator
