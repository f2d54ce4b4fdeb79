#include <algorithm>
#include <vector>

#include "collectives/verify/parts.hpp"

namespace chorus::verify {
namespace {

using plan::Buffer, plan::Channel, plan::Instruction, plan::Opcode, plan::Program;

bool communicates(Instruction const& i) { return i.op == Opcode::send || i.receives(); }

// Returns true for a table of the starts of lists: from 0 to `last`, never falling.
bool partitions(std::vector<std::uint32_t> const& begins, std::size_t last) {
  return !begins.empty() && begins.front() == 0 && begins.back() == last &&
         std::is_sorted(begins.begin(), begins.end());
}

std::string check_shape(Program const& program, Program const& first, std::size_t rank) {
  if (!(program.spec == first.spec)) return "another spec than rank 0";
  if (program.rank != rank) return "the program is that of rank " + std::to_string(program.rank);
  if (program.chunks < 1 || program.chunks != first.chunks) return "another number of chunks than rank 0";
  if (program.coded_from != first.coded_from) return "codes in other chunks than rank 0";
  if (program.rooted != first.rooted) return "rooted for some ranks only";
  if (program.equal_chunks != first.equal_chunks) return "equal chunks for some ranks only";
  if (program.adds_one_by_one != first.adds_one_by_one) return "adds one by one for some ranks only";
  if (has_blocks(first.spec.op) && first.chunks % first.spec.ranks != 0) return "the chunks do not fall into p blocks";
  auto const held = plan::memory(program.spec, program.rank, program.chunks);
  if (held.input != program.input || held.output != program.output) return "the buffers do not hold what they should";
  if (!partitions(program.round_begin, program.instructions.size()))
    return "the rounds do not partition the instructions";
  if (program.dependency_begin.size() != program.instructions.size() + 1 ||
      !partitions(program.dependency_begin, program.dependencies.size()))
    return "the dependency lists do not partition the dependencies";
  return {};
}

// Opcode and buffers may have any value, since programs may come from anywhere.
bool is_known(Instruction const& i) {
  return i.op <= Opcode::reduce && i.src <= Buffer::scratch && i.dst <= Buffer::scratch &&
         (i.flags & ~(plan::final_flag | plan::wide_operand_flag | plan::wide_result_flag | plan::partial_operand_flag |
                      plan::partial_other_flag)) == 0;
}

// Returns true if fields that the opcode does not use have their defaults: one meaning, one form.
bool is_canonical(Instruction const& i) {
  auto const plain = Instruction{};
  if (!i.reads_src() && (i.src != plain.src || i.src_chunk != plain.src_chunk)) return false;
  if (!i.writes_dst() && (i.dst != plain.dst || i.dst_chunk != plain.dst_chunk)) return false;
  if (!communicates(i) && (i.peer != 0 || i.message != 0)) return false;
  if (i.is_final() && (i.op == Opcode::send || i.op == Opcode::recv || i.has_wide_result())) return false;
  bool const adds = i.adds();
  if ((i.has_wide_operand() || i.has_partial_operand() || i.has_partial_other()) && !adds) return false;
  if (i.has_wide_result() && !i.writes_dst()) return false;
  if (i.lane != 0 && !communicates(i)) return false;
  return i.reserved == 0 && i.chunks >= 1 && i.stride >= 1 && (i.chunks > 1 || i.stride == 1);
}

std::string check_instruction(Program const& program, Instruction const& i) {
  if (!is_known(i)) return "an unknown opcode, buffer or flag";
  if (!is_canonical(i)) return "a field has a value that the opcode does not use";
  if (i.reads_src() && !in_bounds(program, i.src, i.src_chunk, i)) return "reads outside its buffer";
  if (i.writes_dst() && !in_bounds(program, i.dst, i.dst_chunk, i)) return "writes outside its buffer";
  if (communicates(i) && (i.peer >= program.spec.ranks || i.peer == program.rank))
    return "the peer is not another rank";
  if (i.writes_dst() && i.dst == Buffer::input) return "writes the input";
  if (program.adds_one_by_one && i.has_partial_operand() && i.has_partial_other())
    return "adds two partial sums, in a plan that adds one by one";
  bool const ends_with_one = i.adds() && i.has_partial_operand() != i.has_partial_other();
  if (program.adds_one_by_one && i.is_final() && program.spec.ranks > 2 && !ends_with_one)
    return "ends a sum without one contribution, in a plan that adds one by one";
  auto const result = plan::holding(program.spec, program.rank, program.chunks).output;
  if (i.writes_dst() && i.dst == Buffer::output &&
      !(result.contains(i.dst_chunk) && result.contains(i.dst_chunk + (i.chunks - 1) * i.stride)))
    return "writes the input, of which only a part is the output in place";
  bool const one_buffer = program.spec.in_place && !program.input.empty() && !program.output.empty();
  if (one_buffer && i.reads_src() && i.src == Buffer::input) return "reads the input, which is the output in place";
  return {};
}

// Codes travel and are decoded; sums are of elements.
bool treats_codes_well(Program const& program, Instruction const& i) {
  bool const reads = i.reads_src() && program.is_coded(i.src, i.src_chunk);
  bool const writes = i.writes_dst() && program.is_coded(i.dst, i.dst_chunk);
  if (!reads && !writes) return true;
  return i.chunks == 1 && i.op != Opcode::recv_reduce && !(reads && writes) && !(writes && i.op == Opcode::reduce);
}

std::string check_instructions(Program const& program) {
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    if (!treats_codes_well(program, program.instructions[i]))
      return "instruction " + std::to_string(i) + " reduces codes, or moves several chunks of them";
    if (auto const wrong = check_instruction(program, program.instructions[i]); !wrong.empty())
      return "instruction " + std::to_string(i) + ": " + wrong;
    for (auto const& dependency : program.dependencies_of(i))
      if (dependency.instruction >= i) return "instruction " + std::to_string(i) + " waits for a later one";
  }
  return {};
}

// Counts the messages, and compares the counts with message numbers and channels.
std::string check_channels(Program const& program) {
  auto const& channels = program.channels;
  auto const unordered = [](Channel const& a, Channel const& b) { return a.peer >= b.peer; };
  if (std::adjacent_find(channels.begin(), channels.end(), unordered) != channels.end())
    return "channels are not sorted";
  std::vector<Channel> counted(channels.size());
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    auto const& instruction = program.instructions[i];
    if (!communicates(instruction)) continue;
    auto const* channel = program.channel(instruction.peer);
    if (channel == nullptr) return "instruction " + std::to_string(i) + " has no channel";
    auto& counts = counted[static_cast<std::size_t>(channel - channels.data())];
    auto& count = instruction.op == Opcode::send ? counts.sends : counts.receives;
    if (instruction.message != count++) return "instruction " + std::to_string(i) + " breaks the numbering of messages";
  }
  for (std::size_t c = 0; c < channels.size(); ++c)
    if (counted[c].sends != channels[c].sends || counted[c].receives != channels[c].receives)
      return "the channel to rank " + std::to_string(channels[c].peer) + " miscounts its messages";
  return {};
}

std::string check_other_ends(std::span<Program const> programs, Program const& program) {
  for (auto const& channel : program.channels) {
    auto const to_peer = " to rank " + std::to_string(channel.peer);
    if (channel.peer >= programs.size()) return "a channel" + to_peer + ", which does not exist";
    auto const* other = programs[channel.peer].channel(program.rank);
    if (other == nullptr || other->receives != channel.sends || other->sends != channel.receives)
      return std::to_string(channel.sends) + " messages" + to_peer + " and " + std::to_string(channel.receives) +
             " from it, which counts " + std::to_string(other ? other->receives : 0) + " and " +
             std::to_string(other ? other->sends : 0);
    if (other->receive_digest != channel.send_digest || other->send_digest != channel.receive_digest)
      return "the digests of the messages with rank " + std::to_string(channel.peer) + " differ";
  }
  return {};
}

}  // namespace

std::string check_structure(std::span<Program const> programs) {
  if (programs.empty()) return "no programs";
  auto const& first = programs.front();
  if (auto const status = plan::check(first.spec); status.has_error()) return status.error().detail;
  if (programs.size() != first.spec.ranks)
    return std::to_string(programs.size()) + " programs for " + std::to_string(first.spec.ranks) + " ranks";
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    auto const& program = programs[rank];
    auto wrong = check_shape(program, first, rank);
    if (wrong.empty()) wrong = check_instructions(program);
    if (wrong.empty()) wrong = check_channels(program);
    if (!wrong.empty()) return "rank " + std::to_string(rank) + ": " + wrong;
  }
  for (auto const& program : programs)
    if (auto const wrong = check_other_ends(programs, program); !wrong.empty())
      return "rank " + std::to_string(program.rank) + ": " + wrong;
  return {};
}

}  // namespace chorus::verify
