#include "collectives/algorithms/ring/ring_stage.hpp"

#include "collectives/algorithms/common/common.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::ChunkRange, plan::Final, plan::Sink;

// Returns the part that is `steps` <= size before the member's own part.
ChunkRange part_before(RingMember const& member, ChunkRange vector, std::uint32_t steps) {
  auto const count = vector.count / member.size;
  return {vector.first + (member.index + member.size - steps) % member.size * count, count};
}

}  // namespace

void emit_ring_reduce_scatter(RingMember const& member, std::uint32_t step, ChunkRange vector, bool untouched,
                              Final final, Sink& sink) {
  auto const mine = part_before(member, vector, step + 2);
  auto const contribution = untouched ? Buffer::input : Buffer::output;
  auto const partial = step == 0 ? contribution : Buffer::output;
  sink.send(member.next, slice(partial, part_before(member, vector, step + 1)));
  sink.recv_reduce(member.previous, slice(contribution, mine), slice(Buffer::output, mine),
                   step + 2 == member.size ? final : Final::no);
}

void emit_ring_all_gather(RingMember const& member, std::uint32_t step, ChunkRange vector, Sink& sink) {
  sink.send(member.next, slice(Buffer::output, part_before(member, vector, step)));
  sink.recv(member.previous, slice(Buffer::output, part_before(member, vector, step + 1)));
}

}  // namespace chorus::algorithms
