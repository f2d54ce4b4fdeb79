// bcube: direct reduce-scatter in groups of about `arity` ranks, stage by stage, and direct all-gather back.
//
// Steps: 2 sum (b - 1) over the stages' sizes b, about 2 (B-1) log_B p for base B. Bytes: every rank sends 2 (p-1)/p n,
// the minimum. Between halving_doubling (base 2) and allpairs (base p): fewer latencies per byte if a rank can exchange
// with B - 1 others at once. Sizes are factors of p, as near to the base as possible from below; a prime factor larger
// than the base is a stage of its own. The first stage, which moves most, is among neighbouring ranks.
//
// Source: Guo et al., "BCube", SIGCOMM 2009; Gloo's allreduce_bcube.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/grouped/levels.hpp"
#include "collectives/core/errc.hpp"

namespace chorus::algorithms {
namespace {

using plan::Rank, plan::Sink, plan::Spec;

Status check(Spec const& spec) {
  if (auto const status = only_all_reduce(spec); status.has_error()) return status;
  if (spec.arity >= 2) return ok();
  return Error(PlanErrc::bad_parameter, "bcube: arity, the base, is 1; expected at least 2");
}

std::uint32_t smallest_divisor_above_one(std::uint32_t n) {
  for (std::uint32_t divisor = 2; divisor * divisor <= n; ++divisor)
    if (n % divisor == 0) return divisor;
  return n;
}

Levels levels(Spec const& spec) {
  Levels levels(Exchange::among_pairs);
  for (auto stride = std::uint32_t{1}; stride < spec.ranks;) {
    auto const rest = spec.ranks / stride;
    auto const near = largest_divisor(rest, spec.arity);
    auto const size = near > 1 ? near : smallest_divisor_above_one(rest);
    levels.add(size, stride);
    stride *= size;
  }
  return levels;
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : levels(spec).rounds(); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  levels(spec).emit(rank, round, {0, spec.ranks}, sink);
}

}  // namespace

plan::Algorithm const bcube{
    .name = "bcube",
    .summary = "all-to-all in small groups, stage by stage: about 2(B-1) log_B p steps, 2(p-1)/p n bytes per rank",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .uses_arity = true,
};

}  // namespace chorus::algorithms
