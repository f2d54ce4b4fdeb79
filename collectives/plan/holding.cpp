#include "collectives/plan/holding.hpp"

#include "collectives/plan/positions.hpp"

namespace chorus::plan {

Holding holding(Spec const& spec, Rank rank, std::uint32_t chunks) {
  ChunkRange const nothing, all{0, chunks};
  auto const per_rank = chunks / spec.ranks;
  ChunkRange const block{position_of(spec, rank) * per_rank, per_rank};
  bool const is_root = rank == spec.root;
  switch (spec.op) {
    case Op::all_reduce:
    case Op::all_to_all:
      return {all, all};
    case Op::reduce:
      return {all, is_root ? all : nothing};
    case Op::broadcast:
      return {is_root ? all : nothing, all};
    case Op::all_gather:
    case Op::barrier:
      return {block, all};
    case Op::reduce_scatter:
      return {all, block};
    case Op::gather:
      return {block, is_root ? all : nothing};
    case Op::scatter:
      return {is_root ? all : nothing, block};
  }
  return {};
}

Holding memory(Spec const& spec, Rank rank, std::uint32_t chunks) {
  auto held = holding(spec, rank, chunks);
  if (!spec.in_place || held.input.empty() || held.output.empty()) return held;
  auto const larger = held.input.count > held.output.count ? held.input : held.output;
  return {larger, larger};
}

}  // namespace chorus::plan
