#include "metrics/runs/bandwidth.hpp"

namespace chorus::metrics {

double bus_factor(Op op, std::uint32_t ranks) {
  if (ranks < 2) return 0;
  double const others = (static_cast<double>(ranks) - 1) / static_cast<double>(ranks);
  switch (op) {
    case Op::all_reduce:
      return 2 * others;
    case Op::reduce:
    case Op::broadcast:
      return 1;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::gather:
    case Op::scatter:
    case Op::all_to_all:
      return others;
    case Op::barrier:
      return 0;
  }
  return 0;
}

}  // namespace chorus::metrics
