#include "collectives/plan/text/text.hpp"

#include <array>
#include <cstdio>

namespace chorus::plan {
namespace {

std::string slice(Buffer buffer, std::uint32_t chunk, Instruction const& shape) {
  auto text = std::string(name(buffer)) + '[' + std::to_string(chunk);
  if (shape.chunks > 1) text += ':' + std::to_string(shape.chunks);
  if (shape.chunks > 1 && shape.stride > 1) text += ':' + std::to_string(shape.stride);
  return text + ']';
}

std::string digest_text(std::uint64_t digest) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(digest));
  return text.data();
}

void append_header(std::string& text, Program const& program) {
  text += "plan " + to_string(program.spec) + '\n';
  text += "rank " + std::to_string(program.rank) + " chunks " + std::to_string(program.chunks) + " scratch " +
          std::to_string(program.scratch_chunks) +
          (program.coded_from != no_codes ? " coded_from " + std::to_string(program.coded_from) : "") +
          (program.rooted ? " rooted" : "") + (program.equal_chunks ? " equal" : "") +
          (program.adds_one_by_one ? " one_by_one" : "") + '\n';
  for (auto const& channel : program.channels)
    text += "channel " + std::to_string(channel.peer) + " sends " + std::to_string(channel.sends) + ' ' +
            digest_text(channel.send_digest) + " receives " + std::to_string(channel.receives) + ' ' +
            digest_text(channel.receive_digest) + '\n';
}

void append_instruction(std::string& text, Program const& program, std::uint32_t index) {
  text += "  " + std::to_string(index) + ' ' + to_string(program.instructions[index]);
  auto const dependencies = program.dependencies_of(index);
  if (!dependencies.empty()) text += " after";
  for (auto const& dependency : dependencies)
    text += ' ' + std::to_string(dependency.instruction) + (dependency.segmentwise ? "~" : "");
  text += '\n';
}

}  // namespace

std::string_view name(Opcode op) {
  constexpr std::array<std::string_view, 5> names{"send", "recv", "recv_reduce", "copy", "reduce"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view name(Buffer buffer) {
  constexpr std::array<std::string_view, 3> names{"input", "output", "scratch"};
  return names[static_cast<std::size_t>(buffer)];
}

std::string to_string(Instruction const& i) {
  auto text = std::string(name(i.op));
  if (i.reads_src()) text += ' ' + slice(i.src, i.src_chunk, i);
  if (i.writes_dst()) text += " into " + slice(i.dst, i.dst_chunk, i);
  if (i.op == Opcode::send) text += " to " + std::to_string(i.peer) + " message " + std::to_string(i.message);
  if (i.receives()) text += " from " + std::to_string(i.peer) + " message " + std::to_string(i.message);
  if (i.lane != 0) text += " lane " + std::to_string(i.lane);
  if (i.has_wide_operand()) text += " wide_operand";
  if (i.has_wide_result()) text += " wide_result";
  if (i.has_partial_operand()) text += " partial_operand";
  if (i.has_partial_other()) text += " partial_other";
  if (i.is_final()) text += " final";
  return text;
}

std::string to_text(Program const& program) {
  std::string text;
  append_header(text, program);
  for (std::size_t round = 0; round + 1 < program.round_begin.size(); ++round) {
    text += "round " + std::to_string(round) + '\n';
    for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
      append_instruction(text, program, i);
  }
  return text;
}

}  // namespace chorus::plan
