#include "collectives/algorithms/common/worker_order.hpp"

namespace chorus::algorithms {

using plan::Final, plan::Rank, plan::Sink, plan::Slice, plan::Spec;

void take_in_worker_order(Spec const& spec, Rank rank, Rank contributor, Slice sum, Slice result, Sink& sink) {
  bool const last = contributor + 1 == spec.ranks;
  auto const final = last ? Final::yes : Final::no;
  auto const own = plan::input(sum.chunk, sum.count);
  if (contributor == rank) {
    if (rank == 0) return;  // the sum begins with this contribution
    sink.reduce(own, sum, final);
    if (last && sum.buffer != result.buffer) sink.copy(sum, result);
  } else if (contributor == 0) {
    sink.recv(contributor, sum);
  } else {
    bool const adds_to_own = rank == 0 && contributor == 1;
    sink.recv_reduce(contributor, adds_to_own ? own : sum, last ? result : sum, final);
  }
}

}  // namespace chorus::algorithms
