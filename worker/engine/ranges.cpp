#include "worker/engine/ranges.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/plan/passes.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Opcode;

Ranges::Ranges(plan::Program const& program, Dtype dtype, plan::Sizes const& sizes, std::span<std::byte const> input,
               std::span<std::byte> output)
    : program_(program),
      addresses_(program, sizes, chorus::element_bytes(dtype)),
      element_bytes_(chorus::element_bytes(dtype)),
      keeps_wide_partials_(reduces(program.spec.op) && devices::find_widen(dtype) != nullptr),
      first_sources_(program.instructions.size()),
      first_destinations_(program.instructions.size()) {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    auto const& each = program_.instructions[i];
    if (each.reads_src()) first_sources_[i] = first(each.src, each.src_chunk, each.chunks, each.stride);
    if (each.writes_dst()) first_destinations_[i] = first(each.dst, each.dst_chunk, each.chunks, each.stride);
  }
  if (keeps_wide_partials_) {
    wide_output_ = wide_extent(Buffer::output);
    wide_scratch_ = wide_extent(Buffer::scratch);
  }
  begin(input, output);
}

Ranges::Extent Ranges::wide_extent(Buffer buffer) const {
  auto const chunks = plan::wide_chunks(program_, buffer);
  if (chunks.empty()) return {};
  return {addresses_.begin_of(buffer, chunks.first), addresses_.begin_of(buffer, chunks.first + chunks.count)};
}

void Ranges::begin(std::span<std::byte const> input, std::span<std::byte> output) {
  CHORUS_ASSERT(input.size() == addresses_.input_bytes() && output.size() == addresses_.output_bytes(),
                "buffers hold what the program addresses");
  input_ = input.data();
  output_ = output.data();
  sources_ = first_sources_;
  destinations_ = first_destinations_;
}

Ranges::OwnBytes Ranges::own_bytes() const {
  OwnBytes own;
  own.scratch = addresses_.scratch_bytes();
  own.wide_output = wide_bytes(wide_output_);
  own.wide_scratch = wide_bytes(wide_scratch_);
  return own;
}

Ranges::Cursor Ranges::first(Buffer buffer, std::uint32_t first_chunk, std::uint32_t chunks,
                             std::uint32_t stride) const {
  Cursor cursor;
  cursor.chunk = first_chunk;
  cursor.chunks = chunks;
  enter_next_piece(cursor, buffer, stride);
  return cursor;
}

void Ranges::enter_next_piece(Cursor& cursor, Buffer buffer, std::uint32_t stride) const {
  while (cursor.left == 0 && cursor.chunks != 0) {
    auto const chunks = stride == 1 ? cursor.chunks : 1;
    cursor.at = addresses_.begin_of(buffer, cursor.chunk);
    cursor.left = addresses_.begin_of(buffer, cursor.chunk + chunks) - cursor.at;
    cursor.chunk += chunks * stride;
    cursor.chunks -= chunks;
  }
}

void Ranges::skip(Cursor& cursor, Buffer buffer, std::uint32_t stride, std::uint64_t bytes) const {
  cursor.at += bytes;
  cursor.left -= bytes;
  enter_next_piece(cursor, buffer, stride);
}

std::span<std::byte const> Ranges::source(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = sources_[i];
  auto const buffer = program_.instructions[i].src;
  auto const* base = buffer == Buffer::input ? input_ : buffer == Buffer::output ? output_ : own_.scratch;
  return {base + cursor.at, std::min(cursor.left, limit)};
}

std::span<std::byte> Ranges::destination(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = destinations_[i];
  auto const buffer = program_.instructions[i].dst;
  CHORUS_ASSERT(buffer != Buffer::input, "a program never writes its input");
  auto* base = buffer == Buffer::output ? output_ : own_.scratch;
  return {base + cursor.at, std::min(cursor.left, limit)};
}

void Ranges::skip_source(std::uint32_t i, std::uint64_t bytes) {
  auto const& instruction = program_.instructions[i];
  skip(sources_[i], instruction.src, instruction.stride, bytes);
}

void Ranges::skip_destination(std::uint32_t i, std::uint64_t bytes) {
  auto const& instruction = program_.instructions[i];
  skip(destinations_[i], instruction.dst, instruction.stride, bytes);
}

bool Ranges::receives_as_it_is(std::uint32_t i) const {
  auto const& instruction = program_.instructions[i];
  return instruction.op == Opcode::recv && !(keeps_wide_partials_ && instruction.has_wide_result());
}

std::byte* Ranges::wide_result(std::uint32_t i) const {
  return wide(program_.instructions[i].dst, destinations_[i].at);
}

std::byte* Ranges::wide_operand(std::uint32_t i) const {
  auto const& instruction = program_.instructions[i];
  return instruction.op == Opcode::recv_reduce ? wide(instruction.src, sources_[i].at)
                                               : wide(instruction.dst, destinations_[i].at);
}

std::byte* Ranges::wide(Buffer buffer, std::uint64_t at) const {
  auto* const base = buffer == Buffer::output ? own_.wide_output : own_.wide_scratch;
  auto const& extent = buffer == Buffer::output ? wide_output_ : wide_scratch_;
  return base + (at - extent.begin) / element_bytes_ * sizeof(float);
}

}  // namespace chorus::engine
