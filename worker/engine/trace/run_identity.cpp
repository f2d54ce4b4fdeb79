#include "worker/engine/trace/run_identity.hpp"

#include <array>
#include <numeric>

#include "collectives/plan/digest.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t marked(std::uint64_t number) { return number | std::uint64_t{1} << 63; }

}  // namespace

std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence) {
  std::array<std::uint64_t, 2> const call{epoch, sequence};
  auto const number = plan::digest(call.data(), sizeof call, plan::digest(group.data(), group.size(), 0));
  return marked(number);
}

std::uint64_t portion_run_number(std::uint64_t call, std::uint64_t portion) {
  return portion == 0 ? call : marked(plan::digest(&portion, sizeof portion, call));
}

std::uint64_t fingerprint(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                          std::uint64_t agreement, std::string_view compression) {
  std::array<std::uint64_t, 3> const operation{static_cast<std::uint64_t>(dtype), sizes.elements,
                                               reduces(spec.op) ? static_cast<std::uint64_t>(reduce) : 0};
  auto whole = plan::digest(operation.data(), sizeof operation, plan::hash(spec));
  if (agreement != 0) whole = plan::digest(&agreement, sizeof agreement, whole);
  if (!compression.empty()) whole = plan::digest(compression.data(), compression.size(), whole);
  if (sizes.counts.empty() || spec.op == Op::all_to_all) return whole;
  return plan::digest(sizes.counts.data(), sizes.counts.size() * sizeof sizes.counts.front(), whole);
}

std::uint64_t channel_digest(std::uint64_t plan_digest, std::span<std::uint64_t const> message_bytes) {
  return plan::digest(message_bytes.data(), message_bytes.size_bytes(), plan_digest);
}

std::string describe(plan::Spec const& spec, Dtype dtype, plan::Sizes const& sizes, ReduceOp reduce,
                     std::uint64_t agreement, std::string_view compression) {
  auto text = std::string(name(spec.op)) + ' ';
  if (reduces(spec.op)) text += std::string(name(reduce)) + ' ';
  if (sizes.counts.empty()) {
    text += std::string(name(dtype)) + '[' + std::to_string(sizes.elements) + "] ";
  } else {
    auto const elements = std::accumulate(sizes.counts.begin(), sizes.counts.end(), std::uint64_t{0});
    text += std::string(name(dtype)) + '[' + std::to_string(elements) + ", uneven] ";
  }
  if (!compression.empty()) text += "as " + std::string(compression) + ' ';
  text += spec.algorithm + " of " + std::to_string(spec.ranks);
  if (spec.root != 0) text += " root " + std::to_string(spec.root);
  if (spec.arity != 2) text += " arity " + std::to_string(spec.arity);
  if (!spec.shape.empty()) text += " shaped";
  if (!spec.by_position.empty()) text += " by position";
  if (spec.in_place) text += " in place";
  if (agreement != 0) text += " pieces " + std::to_string(agreement);
  return text;
}

}  // namespace chorus::engine
