#include "collectives/plan/partial_sums.hpp"

#include <map>
#include <tuple>

namespace chorus::plan {
namespace {

using Range = std::tuple<Buffer, std::uint32_t, std::uint32_t, std::uint32_t>;

Range result_of(Instruction const& i) { return {i.dst, i.dst_chunk, i.chunks, i.stride}; }
Range operand_of(Instruction const& i) {
  return i.op == Opcode::recv_reduce ? Range{i.src, i.src_chunk, i.chunks, i.stride} : result_of(i);
}

}  // namespace

std::vector<PartialSum> partial_sums(Program const& program) {
  std::vector<PartialSum> sums;
  std::map<Range, std::size_t> kept;  // unfinished partial sums by their place
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    auto const& instruction = program.instructions[i];
    if (!instruction.has_wide_operand() && !instruction.has_wide_result()) continue;
    auto sum = sums.size();
    if (instruction.has_wide_operand())
      if (auto const taken = kept.extract(operand_of(instruction)); !taken.empty()) sum = taken.mapped();
    if (sum == sums.size()) sums.emplace_back();
    sums[sum].push_back(i);
    if (instruction.has_wide_result()) kept.insert_or_assign(result_of(instruction), sum);
  }
  return sums;
}

}  // namespace chorus::plan
