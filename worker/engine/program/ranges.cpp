#include "worker/engine/program/ranges.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Opcode;

Ranges::Ranges(plan::Program const& program, Dtype dtype, plan::Sizes const& sizes, PartialsLimit limit,
               std::span<std::byte const> input, std::span<std::byte> output, std::optional<Coding> const& coding)
    : program_(program),
      addresses_(program, sizes, chorus::element_bytes(dtype), coding),
      element_bytes_(chorus::element_bytes(dtype)),
      keeps_wide_partials_(reduces(program.spec.op) && devices::is_summed_in_f32(dtype)),
      partials_(keeps_wide_partials_ ? Partials(program, addresses_.total_bytes(), dtype, limit) : Partials()),
      first_sources_(program.instructions.size()),
      first_destinations_(program.instructions.size()) {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    auto const& each = program_.instructions[i];
    if (each.reads_src()) first_sources_[i] = first(each.src, each.src_chunk, each.chunks, each.stride);
    if (each.writes_dst()) first_destinations_[i] = first(each.dst, each.dst_chunk, each.chunks, each.stride);
  }
  begin(input, output);
}

void Ranges::begin(std::span<std::byte const> input, std::span<std::byte> output) {
  CHORUS_ASSERT(input.size() == addresses_.input_bytes() && output.size() == addresses_.output_bytes(),
                "buffers hold what the program addresses");
  input_ = input.data();
  output_ = output.data();
  sources_ = first_sources_;
  destinations_ = first_destinations_;
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
    auto const piece = addresses_.piece(buffer, cursor.chunk, stride == 1 ? cursor.chunks : 1);
    cursor.at = piece.at;
    cursor.left = piece.bytes;
    cursor.chunk += piece.chunks * stride;
    cursor.chunks -= piece.chunks;
  }
}

void Ranges::skip(Cursor& cursor, Buffer buffer, std::uint32_t stride, std::uint64_t bytes) const {
  cursor.passed += bytes;
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

}  // namespace chorus::engine
