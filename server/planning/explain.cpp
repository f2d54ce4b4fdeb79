#include "server/planning/explain.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/plan/positions.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/verify.hpp"

namespace chorus::planning {
namespace {

Result<std::vector<plan::Program>> build_all(plan::Spec const& spec) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (!algorithm) return algorithm.error();
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(**algorithm, spec, rank);
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

api::Considered show(model::Candidate const& candidate) {
  auto const& [spec, cost] = candidate;
  return {spec.algorithm, spec.root, spec.arity, spec.shape, cost.seconds, cost.rounds, cost.bytes_per_rank};
}

}  // namespace

std::vector<api::Considered> show_cheapest(model::Choice const& choice, std::size_t most) {
  std::vector<api::Considered> shown;
  shown.reserve(most + 1);
  for (auto const& candidate : choice.considered) {
    bool const is_chosen = candidate.spec == choice.spec;
    bool const is_of_another = shown.size() < most && std::ranges::none_of(shown, [&](api::Considered const& one) {
                                 return one.algorithm == candidate.spec.algorithm;
                               });
    if (is_chosen || is_of_another) shown.push_back(show(candidate));
  }
  return shown;
}

api::LowerBound show_lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes) {
  auto const bound = model::lower_bound(op, ranks, bytes);
  return {bound.rounds, bound.bytes_per_rank};
}

Result<api::PlanAnswer> explain(model::Choice const& choice, std::uint64_t bytes, std::uint32_t verified_ranks_max) {
  api::PlanAnswer answer;
  answer.algorithm = choice.spec.algorithm;
  answer.root = choice.spec.root;
  answer.arity = choice.spec.arity;
  answer.algorithm_shape = choice.spec.shape;
  answer.reason = choice.reason;
  answer.predicted_seconds = choice.cost.seconds;
  std::ranges::transform(choice.considered, std::back_inserter(answer.considered), show);
  answer.lower_bound = show_lower_bound(choice.spec.op, choice.spec.ranks, bytes);
  if (choice.spec.ranks > verified_ranks_max) {
    answer.verification = "neither verified nor drawn here above " + std::to_string(verified_ranks_max) +
                          " ranks; chorus verify proves it";
    return answer;
  }
  auto const programs = build_all(choice.spec);
  if (!programs) return programs.error();
  auto const report = verify::check(*programs);
  answer.verified = report.ok;
  answer.verification =
      report.ok ? "every output chunk holds what " + std::string(name(choice.spec.op)) + " defines" : report.failure;
  if (choice.spec.ranks <= drawn_ranks_max)
    answer.rounds = rounds_of(*programs);
  else
    answer.verification += "; more than " + std::to_string(drawn_ranks_max) + " ranks are not drawn";
  return answer;
}

std::string refused_member(model::Wish const& wish) {
  bool const is_between = wish.compression && wish.compression->between;
  auto const named = algorithms::find(wish.algorithm);
  bool const another_does = wish.op == Op::all_reduce && named && (*named)->coded_from == nullptr;
  return is_between && !another_does ? "/compression" : "/algorithm";
}

plan::Spec in_ranks(plan::Spec of_positions, std::vector<plan::Rank> const& by_position) {
  if (by_position.empty()) return of_positions;
  of_positions.root = by_position[of_positions.root];
  auto const algorithm = algorithms::find(of_positions.algorithm);
  return algorithm ? plan::with_positions(**algorithm, std::move(of_positions), by_position) : of_positions;
}

Result<model::Choice> select_in(Place const& place, model::Wish wish, std::uint64_t elements,
                                std::size_t element_bytes) {
  auto const& order = place.by_position;
  if (!order.empty()) {
    if (is_rooted(wish.op)) wish.root = wish.root.value_or(0);
    if (wish.root) wish.root = static_cast<plan::Rank>(std::ranges::find(order, *wish.root) - order.begin());
    wish.names = order;
  }
  auto choice = model::select(wish, place.network(), elements, element_bytes);
  if (!choice || order.empty()) return choice;
  choice->spec = in_ranks(std::move(choice->spec), order);
  for (auto& candidate : choice->considered) candidate.spec = in_ranks(std::move(candidate.spec), order);
  return choice;
}

Result<std::optional<CompressionWish>> compression_of(std::optional<api::Compression> const& wished, Op op,
                                                      Dtype dtype) {
  if (!wished) return std::optional<CompressionWish>();
  auto const known = parse_compression(wished->format, wished->between, wished->allow);
  if (!known) return Error(PlanErrc::unsupported_operation, known.error().detail);
  auto const fixed = known->fixed();
  if ((fixed && !plan::has_codes(dtype, *fixed)) || !can_be_compressed(op))
    return Error(PlanErrc::unsupported_operation, std::string(name(op)) + " of " + std::string(name(dtype)) +
                                                      " has no compression '" + to_string(*known) +
                                                      "': docs/reference/compressed_collectives.md");
  return std::optional(*known);
}

std::uint64_t Vector::priced_elements(Sent const& sent, Op op, std::uint32_t ranks) const {
  if (sent && !sent->between) return plan::carriers_of(sent->format, op, ranks, sizes);
  return std::accumulate(sizes.counts.begin(), sizes.counts.end(), sizes.counts.empty() ? sizes.elements : 0);
}

std::size_t Vector::priced_element_bytes(Sent const& sent) const {
  return element_bytes(sent && !sent->between ? carrier_of(sent->format) : dtype);
}

std::optional<std::uint64_t> Vector::wire_bytes(Sent const& sent, plan::Spec const& chosen) const {
  auto const algorithm = algorithms::find(chosen.algorithm);
  auto const format = algorithm ? plan::format_sent(sent, **algorithm) : std::nullopt;
  if (!format) return std::nullopt;
  return plan::wire_bytes_of(*format, chosen.op, chosen.ranks, sizes);
}

Decision decide(std::optional<CompressionWish> const& wish, model::Alternatives const& alternatives,
                std::vector<model::Sent> considered, Vector const& vector) {
  model::sort_by_cost(considered);
  auto const shown = [&](model::Sent const& one) {
    auto const& [sent, choice] = one;
    auto const format = sent ? std::optional(std::string(name(sent->format))) : std::nullopt;
    return api::ConsideredFormat{format, choice.spec.algorithm, choice.model_seconds,
                                 vector.wire_bytes(sent, choice.spec)};
  };
  Decision decision{considered.front().compression, considered.front().choice, {}, {}, {}};
  auto const& [compression, choice] = considered.front();
  decision.wire_bytes = vector.wire_bytes(compression, choice.spec);
  if (decision.wire_bytes) decision.format = compression->format;
  if (!wish || !wish->is_automatic()) return decision;
  decision.choice.reason = model::reason(considered, alternatives.why_only_elements);
  decision.considered_formats.emplace();
  std::ranges::transform(considered, std::back_inserter(*decision.considered_formats), shown);
  return decision;
}

Result<api::PlanAnswer> plan_in(Place const& place, model::Wish wish, Vector const& vector,
                                std::optional<CompressionWish> const& compression, std::uint32_t verified_ranks_max) {
  if (wish.root) wish.root = place.rank_of(*wish.root);
  auto const ranks = static_cast<std::uint32_t>(place.shape.localities.size());
  auto const alternatives = model::alternatives(compression, vector.dtype, place.shape.localities);
  std::vector<model::Sent> considered;
  for (auto const& sent : alternatives.sent) {
    auto choice = select_in(place, model::wish_for(wish, sent), vector.priced_elements(sent, wish.op, ranks),
                            vector.priced_element_bytes(sent));
    if (!choice) return choice.error();
    considered.push_back({sent, std::move(*choice)});
  }
  auto decision = decide(compression, alternatives, std::move(considered), vector);
  auto const bytes = vector.sizes.elements * element_bytes(vector.dtype);
  auto answer = explain(decision.choice, decision.wire_bytes.value_or(bytes), verified_ranks_max);
  if (!answer) return answer;
  answer->considered_formats = std::move(decision.considered_formats);
  if (decision.format) {
    answer->wire_format = name(*decision.format);
    answer->wire_bytes = *decision.wire_bytes;
    answer->compression_ratio = compression_ratio(bytes, *decision.wire_bytes);
  }
  if (!place.ordered) return answer;
  answer->order = place.ordered->order;
  answer->stretch = place.ordered->stretch;
  return answer;
}

}  // namespace chorus::planning
