#include "worker/engine/messages/message_runs.hpp"

#include <algorithm>
#include <utility>

#include "collectives/plan/digest.hpp"

namespace chorus::engine {
namespace {

constexpr char const* algorithm_name = "message";

// One byte per element. Sizes of plans have 63 bits.
plan::Program program_of(GroupMembership const& membership, MessageWay way, plan::Rank peer) {
  bool const sends = way == MessageWay::send;
  plan::Program program;
  program.spec.op = Op::broadcast;
  program.spec.algorithm = algorithm_name;
  program.spec.ranks = static_cast<std::uint32_t>(membership.members.size());
  program.spec.root = sends ? membership.rank : peer == any_source ? 0 : peer;
  program.rank = membership.rank;
  (sends ? program.input : program.output) = {0, 1};
  for (plan::Rank rank = 0; rank < program.spec.ranks; ++rank) {
    if (rank == membership.rank || (peer != any_source && rank != peer)) continue;
    plan::Instruction instruction;
    instruction.op = sends ? plan::Opcode::send : plan::Opcode::recv;
    instruction.peer = rank;
    program.instructions.push_back(instruction);
    program.channels.push_back({rank, sends ? 1U : 0U, sends ? 0U : 1U, 0, 0});
  }
  auto const count = program.instructions.size();
  program.round_begin = {0, static_cast<std::uint32_t>(count)};
  program.dependency_begin.assign(count + 1, 0);
  return program;
}

}  // namespace

RunSpec message_run(GroupMembership const& membership, MessageWay way, plan::Rank peer, std::uint64_t bytes) {
  RunSpec spec;
  spec.group = membership.name;
  spec.epoch = membership.epoch;
  spec.token = membership.token;
  spec.description = "message u8[" + std::to_string(bytes) + "]";
  spec.fingerprint = plan::digest(spec.description.data(), spec.description.size(), 0);
  spec.program = std::make_shared<plan::Program const>(program_of(membership, way, peer));
  spec.members = membership.members;
  spec.dtype = Dtype::u8;
  spec.sizes.elements = bytes;
  return spec;
}

bool is_watch(RunSpec const& spec) {
  auto const& program = *spec.program;
  return spec.sizes.elements == 0 && program.spec.algorithm == algorithm_name && program.input.empty();
}

bool is_watch_of_nobody(RunSpec const& spec) { return spec.program->channels.empty() && is_watch(spec); }

}  // namespace chorus::engine
