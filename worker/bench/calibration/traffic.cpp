#include "worker/bench/calibration/traffic.hpp"

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/sizes/sizes.hpp"

namespace chorus::bench {
namespace {

// Scratch is cut like the vector, and starts over after its last chunk.
std::uint64_t elements_of(plan::Layout const& layout, std::uint32_t chunk, plan::Instruction const& instruction) {
  std::uint64_t elements = 0;
  for (std::uint32_t k = 0; k < instruction.chunks; ++k)
    elements += layout.range((chunk + k * instruction.stride) % layout.chunks()).size();
  return elements;
}

}  // namespace

Result<Traffic> traffic_of(plan::Spec const& spec, Task const& task) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (algorithm.has_error()) return algorithm.error();
  Traffic traffic;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto const program = plan::build(**algorithm, spec, rank);
    if (program.has_error()) return program.error();
    auto const layout = plan::layouts(*program, {task.elements, {}, {}}).input;
    for (std::size_t round = 0; round + 1 < program->round_begin.size(); ++round) {
      bool receives = false;
      for (auto at = program->round_begin[round]; at < program->round_begin[round + 1]; ++at) {
        auto const& instruction = program->instructions[at];
        auto const bytes =
            elements_of(layout, instruction.writes_dst() ? instruction.dst_chunk : instruction.src_chunk, instruction) *
            element_bytes(task.dtype);
        if (instruction.op == plan::Opcode::send) {
          traffic.messages += bytes != 0;
          traffic.bytes += bytes;
        }
        if (instruction.adds()) traffic.reduced_bytes += bytes;
        receives |= instruction.receives() && bytes != 0;
      }
      traffic.wakes += receives;
    }
  }
  return traffic;
}

}  // namespace chorus::bench
