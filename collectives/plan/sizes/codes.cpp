#include "collectives/plan/sizes/codes.hpp"

namespace chorus::plan {

std::string has_no_codes(Op op) {
  return std::string(name(op)) + " has none; all_reduce, reduce, reduce_scatter, all_gather and broadcast have";
}

std::string has_no_bound(ReduceOp reduce) {
  return "the error of " + std::string(name(reduce)) + " has no bound; sum and avg have";
}

std::vector<std::uint64_t> blocks_of(Op op, std::uint32_t ranks, Sizes const& sizes) {
  if (!has_blocks(op) || !sizes.counts.empty()) return sizes.counts;
  Layout const layout(sizes.elements, ranks);
  std::vector<std::uint64_t> blocks(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) blocks[rank] = layout.range(rank).size();
  return blocks;
}

std::uint64_t carriers_of(WireFormat format, Op op, std::uint32_t ranks, Sizes const& sizes) {
  if (!has_blocks(op)) return carriers(format, sizes.elements);
  std::uint64_t sum = 0;
  for (auto const elements : blocks_of(op, ranks, sizes)) sum += carriers(format, elements);
  return sum;
}

}  // namespace chorus::plan
