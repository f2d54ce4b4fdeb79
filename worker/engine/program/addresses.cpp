#include "worker/engine/program/addresses.hpp"

#include "collectives/core/assert.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Instruction;

std::uint64_t Addresses::begin_of_memory(plan::ChunkRange range, plan::Layout const& layout) {
  return range.empty() || range.count == layout.chunks() ? 0 : layout.piece(range.first, range.count).begin;
}

std::uint64_t Addresses::before(plan::Layout const& layout, std::uint32_t chunk) const {
  auto const vectors = chunk / layout.chunks();
  return (vectors * layout.elements() + layout.begin_of(chunk % layout.chunks())) * element_bytes_;
}

void Addresses::place_codes(Coding const& coding) {
  auto const& layout = layouts_.input;
  auto at = before(layout, program_.coded_from);
  for (auto chunk = program_.coded_from; chunk < program_.scratch_chunks; ++chunk) {
    codes_at_.push_back(at);
    at += coding.codes_bytes(layout.range(chunk % layout.chunks()).size());
  }
  codes_at_.push_back(at);
}

Addresses::Piece Addresses::piece(Buffer buffer, std::uint32_t first, std::uint32_t count) const {
  auto const& layout = layout_of(buffer);
  if (buffer == Buffer::scratch) {
    auto const at = in_scratch(first);
    return {at, in_scratch(first + count) - at, count};
  }
  auto const piece = layout.piece(first, count);
  auto const begin = buffer == Buffer::output ? output_begin_ : input_begin_;
  return {(piece.begin - begin) * element_bytes_, piece.elements * element_bytes_, piece.chunks};
}

std::vector<std::uint64_t> Addresses::total_bytes() const {
  std::vector<std::uint64_t> totals;
  totals.reserve(program_.instructions.size());
  auto const size = [&](Instruction const& i, Buffer buffer, std::uint32_t chunk) {
    auto const& layout = layout_of(buffer);
    if (is_coded(buffer, chunk)) return in_scratch(chunk + 1) - in_scratch(chunk);
    if (i.stride == 1) return before(layout, chunk + i.chunks) - before(layout, chunk);
    std::uint64_t bytes = 0;
    for (std::uint32_t k = 0; k < i.chunks; ++k)
      bytes += before(layout, chunk + k * i.stride + 1) - before(layout, chunk + k * i.stride);
    return bytes;
  };
  for (auto const& i : program_.instructions) {
    bool const encodes = i.op == plan::Opcode::copy && is_coded(i.dst, i.dst_chunk);
    bool const decodes = i.reads_src() && i.writes_dst() && is_coded(i.src, i.src_chunk);
    totals.push_back(i.reads_src() && !decodes ? size(i, i.src, i.src_chunk) : size(i, i.dst, i.dst_chunk));
    CHORUS_ASSERT(!i.writes_dst() || encodes || size(i, i.dst, i.dst_chunk) == totals.back(),
                  "what is read is as long as what is written");
  }
  return totals;
}

}  // namespace chorus::engine
