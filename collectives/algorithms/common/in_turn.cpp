#include "collectives/algorithms/common/in_turn.hpp"

namespace chorus::algorithms {

using plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Spec;

void reduce_in_turn(Spec const& spec, Rank rank, Rank turn, std::uint32_t chunk, Sink& sink) {
  auto const sum = spec.in_place ? scratch(chunk) : output(chunk);
  bool const is_last = turn + 1 == spec.ranks;
  auto const final = is_last ? Final::yes : Final::no;
  if (rank == 0) {  // the sum begins with the rank's own contribution
    if (turn > 0) sink.recv_reduce(turn, turn == 1 ? input(chunk) : sum, is_last ? output(chunk) : sum, final);
  } else if (turn == 0) {
    sink.recv(turn, sum);
  } else if (turn != rank) {
    sink.recv_reduce(turn, sum, is_last ? output(chunk) : sum, final);
  } else {
    sink.reduce(input(chunk), sum, final);
    if (is_last && spec.in_place) sink.copy(sum, output(chunk));
  }
}

std::uint32_t scratch_in_turn(Spec const& spec, std::uint32_t chunks) {
  return spec.in_place && spec.ranks > 1 ? chunks : 0;
}

}  // namespace chorus::algorithms
