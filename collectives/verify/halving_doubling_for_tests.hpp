// Two all_reduce algorithms for powers of two with features that the shipped ones do not have: ranges of many chunks
// that overlap without being equal, and strides. Recursive halving, then recursive doubling (Rabenseifner), over
// neighbouring chunks or over every 2nd, 4th, ... chunk.
#pragma once

#include <bit>

#include "collectives/core/errc.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::verify {

inline Status halving_check(plan::Spec const& spec) {
  if (spec.op == Op::all_reduce && std::has_single_bit(spec.ranks)) return ok();
  return Error(PlanErrc::unsupported_operation, "for tests with powers of two");
}
inline std::uint32_t halving_chunks(plan::Spec const& spec) { return spec.ranks; }
inline std::uint32_t halving_scratch(plan::Spec const&, plan::Rank) { return 0; }
inline std::uint32_t halving_steps(plan::Spec const& spec) {
  auto steps = std::uint32_t{0};
  while (std::uint32_t{1} << steps < spec.ranks) ++steps;
  return steps;
}
inline std::uint32_t halving_rounds(plan::Spec const& spec, plan::Rank) { return 2 * halving_steps(spec); }

// Returns the chunks that `rank` holds after `step` halvings.
inline plan::Slice neighbours_after(std::uint32_t p, plan::Rank rank, std::uint32_t step) {
  auto const count = p >> step;
  return plan::output(rank / count * count, count);
}
inline plan::Slice strided_after(std::uint32_t p, plan::Rank rank, std::uint32_t step) {
  auto const stride = std::uint32_t{1} << step;
  auto slice = plan::output(rank % stride, p >> step);
  slice.stride = stride;
  return slice;
}

template <auto held_after, bool strided>
void halving_emit(plan::Spec const& spec, plan::Rank rank, std::uint32_t round, plan::Sink& sink) {
  auto const steps = halving_steps(spec);
  auto const step = round < steps ? round : 2 * steps - 1 - round;
  auto const peer = rank ^ (strided ? 1u << step : spec.ranks >> (step + 1));
  auto const mine = held_after(spec.ranks, rank, step + 1), theirs = held_after(spec.ranks, peer, step + 1);
  auto const before = [&](plan::Slice slice) {
    if (step == 0) slice.buffer = plan::Buffer::input;
    return slice;
  };
  if (round < steps) {
    sink.send(peer, before(theirs));
    sink.recv_reduce(peer, before(mine), mine, step + 1 == steps ? plan::Final::yes : plan::Final::no);
  } else {
    sink.send(peer, mine);
    sink.recv(peer, theirs);
  }
}

inline constexpr plan::Algorithm halving_doubling{
    .name = "halving_doubling",
    .summary = "",
    .check = halving_check,
    .chunks = halving_chunks,
    .scratch_chunks = halving_scratch,
    .rounds = halving_rounds,
    .emit = halving_emit<neighbours_after, false>,
};
inline constexpr plan::Algorithm strided_halving{
    .name = "strided_halving",
    .summary = "",
    .check = halving_check,
    .chunks = halving_chunks,
    .scratch_chunks = halving_scratch,
    .rounds = halving_rounds,
    .emit = halving_emit<strided_after, true>,
};

}  // namespace chorus::verify
