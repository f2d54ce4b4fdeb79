#include <bit>

#include "collectives/model/cost.hpp"

namespace chorus::model {
namespace {

// Every step at most doubles the number of ranks that know of one rank.
std::uint32_t doublings(std::uint32_t ranks) { return static_cast<std::uint32_t>(std::bit_width(ranks - 1)); }

std::uint64_t least_bytes(Op op, std::uint32_t p, std::uint64_t n) {
  switch (op) {
    // Reduce-scatter and all-gather, each (p-1)/p n: 2n - 2n/p, rounded up.
    case Op::all_reduce: {
      auto const per_rank = n / p, rest = n % p;
      return 2 * n - (2 * per_rank + 2 * rest / p);
    }
    // The vector except the rank's own share; some rank has the smallest share.
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
      return n - n / p;
    // Likewise for the root, which may have the largest share.
    case Op::scatter:
      return n - (n / p + (n % p != 0));
    // A rank that has the vector, or a contribution to it, must send it once.
    case Op::broadcast:
    case Op::reduce:
      return n;
    // Some rank other than the root sends its share. The root may have the largest share.
    case Op::gather:
      return n / p + (n % p > 1);
    case Op::barrier:
      return 0;
  }
  return 0;
}

}  // namespace

LowerBound lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes) {
  if (ranks < 2) return {};
  return {doublings(ranks), least_bytes(op, ranks, bytes)};
}

}  // namespace chorus::model
