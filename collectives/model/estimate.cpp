#include "collectives/model/estimate.hpp"

#include <algorithm>
#include <array>

namespace chorus::model {
namespace {

// n bytes over p ranks; alpha, beta, gamma as in cost.hpp.
struct Problem {
  double p, n, alpha_s, beta, gamma;
  std::uint32_t ranks, arity;
  std::uint64_t elements;
  std::size_t element_bytes;
  double segment_bytes;  // of the whole vector
};

Cost centralized(Problem const& q) {
  // Reductions one after the other; the first results leave while the last contribution still arrives.
  auto const in_s = (q.p - 1) * (q.alpha_s + q.n * (q.beta + q.gamma));
  auto const out_s = (q.p - 1) * (q.alpha_s + q.n * q.beta);
  auto const overlap_s = (q.n - q.segment_bytes) * q.beta;
  return {in_s + out_s - overlap_s, 2 * (q.ranks - 1), q.elements * q.element_bytes * (q.ranks - 1)};
}

Cost tree(Problem const& q) {
  auto const k = std::min(q.arity, q.ranks - 1);
  auto depth = std::uint32_t{0};
  for (auto node = q.ranks - 1; node > 0; node = (node - 1) / k) depth += 1;
  // The first segment climbs and descends level by level; the rest follows it through the busiest node, which receives
  // from k children and from its parent.
  auto const fill_s = 2 * depth * k * (q.alpha_s + q.segment_bytes * q.beta) + depth * k * q.segment_bytes * q.gamma;
  auto const rest_s = (q.n - q.segment_bytes) * ((k + 1) * q.beta + k * q.gamma);
  auto const sends = depth > 1 ? k + 1 : k;
  return {fill_s + rest_s, 2 * k * depth, q.elements * q.element_bytes * sends};
}

Cost ring(Problem const& q) {
  auto const chunk_bytes = q.n / q.p;
  auto const step_s = q.alpha_s + chunk_bytes * q.beta;
  // Each half leaves out one chunk, the busiest rank two neighbouring small ones, if there are two.
  auto const kept = 2 * (q.elements / q.ranks) + (q.elements % q.ranks == q.ranks - 1 ? 1 : 0);
  auto const seconds = (q.p - 1) * (2 * step_s + chunk_bytes * q.gamma);
  return {seconds, 2 * (q.ranks - 1), (2 * q.elements - kept) * q.element_bytes};
}

struct Form {
  std::string_view algorithm;
  Cost (*cost)(Problem const&);
};
constexpr std::array forms{Form{"centralized", centralized}, Form{"tree", tree}, Form{"ring", ring}};

}  // namespace

std::optional<Cost> estimate(plan::Spec const& spec, LinkCost const& slowest, std::uint64_t elements,
                             std::size_t element_bytes, Constants const& constants) {
  if (spec.op != Op::all_reduce) return std::nullopt;
  if (spec.ranks == 1) return Cost{};
  auto const bytes = static_cast<double>(elements) * static_cast<double>(element_bytes);
  Problem const problem{double(spec.ranks),
                        bytes,
                        slowest.alpha_s,
                        slowest.beta_s_per_byte,
                        constants.gamma_s_per_byte,
                        spec.ranks,
                        spec.arity,
                        elements,
                        element_bytes,
                        std::min(bytes, static_cast<double>(constants.segment_bytes))};
  for (auto const& form : forms)
    if (form.algorithm == spec.algorithm) return form.cost(problem);
  return std::nullopt;
}

}  // namespace chorus::model
