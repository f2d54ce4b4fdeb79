#include "worker/engine/workspace.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Instruction;
using plan::Opcode;

Workspace::Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, std::uint64_t elements,
                     std::span<std::byte const> input, std::span<std::byte> output)
    : program_(program),
      layout_(elements, program.chunks),
      element_bytes_(chorus::element_bytes(dtype)),
      combine_(devices::find_combine(reduce, dtype)),
      divide_(reduce == ReduceOp::avg ? devices::find_divide(dtype) : nullptr),
      input_(input.data()),
      output_(output.data()),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(begin_of(program.scratch_chunks))),
      sources_(program.instructions.size()),
      destinations_(program.instructions.size()) {
  CHORUS_ASSERT(input.size() == elements * element_bytes_ && output.size() == input.size(), "buffers hold the vector");
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    auto const& instruction = program.instructions[i];
    if (instruction.reads_src()) sources_[i] = first(instruction.src_chunk, instruction.chunks, instruction.stride);
    if (instruction.writes_dst())
      destinations_[i] = first(instruction.dst_chunk, instruction.chunks, instruction.stride);
  }
}

std::uint64_t Workspace::begin_of(std::uint32_t chunk) const {
  auto const vectors = chunk / layout_.chunks();  // more than 0 in scratch only
  return (vectors * layout_.elements() + layout_.range(chunk % layout_.chunks()).begin) * element_bytes_;
}

Workspace::Cursor Workspace::first(std::uint32_t first_chunk, std::uint32_t chunks, std::uint32_t stride) const {
  Cursor cursor;
  cursor.chunk = first_chunk;
  cursor.chunks = chunks;
  enter_next_piece(cursor, stride);
  return cursor;
}

void Workspace::enter_next_piece(Cursor& cursor, std::uint32_t stride) const {
  while (cursor.left == 0 && cursor.chunks != 0) {
    auto const chunks = stride == 1 ? cursor.chunks : 1;
    cursor.at = begin_of(cursor.chunk);
    cursor.left = begin_of(cursor.chunk + chunks) - cursor.at;
    cursor.chunk += chunks * stride;
    cursor.chunks -= chunks;
  }
}

void Workspace::skip(Cursor& cursor, std::uint32_t stride, std::uint64_t bytes) const {
  cursor.at += bytes;
  cursor.left -= bytes;
  enter_next_piece(cursor, stride);
}

std::vector<std::uint64_t> Workspace::total_bytes() const {
  std::vector<std::uint64_t> totals;
  totals.reserve(program_.instructions.size());
  auto const size = [&](Instruction const& i, std::uint32_t chunk) {
    if (i.stride == 1) return begin_of(chunk + i.chunks) - begin_of(chunk);
    std::uint64_t bytes = 0;
    for (std::uint32_t k = 0; k < i.chunks; ++k)
      bytes += begin_of(chunk + k * i.stride + 1) - begin_of(chunk + k * i.stride);
    return bytes;
  };
  for (auto const& i : program_.instructions) {
    totals.push_back(size(i, i.reads_src() ? i.src_chunk : i.dst_chunk));
    CHORUS_ASSERT(!i.writes_dst() || size(i, i.dst_chunk) == totals.back(),
                  "what is read is as long as what is written");
  }
  return totals;
}

std::span<std::byte const> Workspace::source(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = sources_[i];
  auto const buffer = program_.instructions[i].src;
  auto const* base = buffer == Buffer::input ? input_ : buffer == Buffer::output ? output_ : scratch_.get();
  return {base + cursor.at, std::min(cursor.left, limit)};
}

std::span<std::byte> Workspace::destination(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = destinations_[i];
  auto const buffer = program_.instructions[i].dst;
  CHORUS_ASSERT(buffer != Buffer::input, "a program never writes its input");
  auto* base = buffer == Buffer::output ? output_ : scratch_.get();
  return {base + cursor.at, std::min(cursor.left, limit)};
}

void Workspace::skip_source(std::uint32_t i, std::uint64_t bytes) {
  skip(sources_[i], program_.instructions[i].stride, bytes);
}

void Workspace::skip_destination(std::uint32_t i, std::uint64_t bytes) {
  skip(destinations_[i], program_.instructions[i].stride, bytes);
}

void Workspace::finish(Instruction const& instruction, std::span<std::byte> written) const {
  if (divide_ != nullptr && instruction.is_final())
    divide_(written.data(), written.size() / element_bytes_, program_.spec.ranks);
}

void Workspace::take_in(std::uint32_t i, std::span<std::byte const> received) {
  auto const& instruction = program_.instructions[i];
  while (!received.empty()) {
    auto dst = destination(i, received.size());
    if (instruction.op == Opcode::recv_reduce) {
      auto const operand = source(i, dst.size());
      dst = dst.first(operand.size());
      combine_(dst.data(), operand.data(), received.data(), dst.size() / element_bytes_);
      skip_source(i, dst.size());
    } else {
      std::memcpy(dst.data(), received.data(), dst.size());
    }
    finish(instruction, dst);
    received = received.subspan(dst.size());
    skip_destination(i, dst.size());
  }
}

void Workspace::work(std::uint32_t i, std::uint64_t bytes) {
  auto const& instruction = program_.instructions[i];
  while (bytes != 0) {
    auto dst = destination(i, bytes);
    auto const operand = source(i, dst.size());
    dst = dst.first(operand.size());
    if (instruction.op == Opcode::reduce)
      combine_(dst.data(), dst.data(), operand.data(), dst.size() / element_bytes_);
    else if (dst.data() != operand.data())
      std::memcpy(dst.data(), operand.data(), dst.size());
    finish(instruction, dst);
    bytes -= dst.size();
    skip_source(i, dst.size());
    skip_destination(i, dst.size());
  }
}

}  // namespace chorus::engine
