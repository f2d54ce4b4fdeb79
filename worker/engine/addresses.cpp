#include "worker/engine/addresses.hpp"

#include "collectives/core/assert.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Instruction;

std::uint64_t Addresses::begin_of(Buffer buffer, std::uint32_t chunk) const {
  auto const& layout = buffer == Buffer::output ? layouts_.output : layouts_.input;
  if (buffer == Buffer::scratch) {
    auto const vectors = chunk / layout.chunks();
    return (vectors * layout.elements() + layout.begin_of(chunk % layout.chunks())) * element_bytes_;
  }
  auto const first = buffer == Buffer::output ? program_.output.first : program_.input.first;
  return (layout.begin_of(chunk) - layout.begin_of(first)) * element_bytes_;
}

std::vector<std::uint64_t> Addresses::total_bytes() const {
  std::vector<std::uint64_t> totals;
  totals.reserve(program_.instructions.size());
  auto const size = [&](Instruction const& i, Buffer buffer, std::uint32_t chunk) {
    if (i.stride == 1) return begin_of(buffer, chunk + i.chunks) - begin_of(buffer, chunk);
    std::uint64_t bytes = 0;
    for (std::uint32_t k = 0; k < i.chunks; ++k)
      bytes += begin_of(buffer, chunk + k * i.stride + 1) - begin_of(buffer, chunk + k * i.stride);
    return bytes;
  };
  for (auto const& i : program_.instructions) {
    totals.push_back(i.reads_src() ? size(i, i.src, i.src_chunk) : size(i, i.dst, i.dst_chunk));
    CHORUS_ASSERT(!i.writes_dst() || size(i, i.dst, i.dst_chunk) == totals.back(),
                  "what is read is as long as what is written");
  }
  return totals;
}

}  // namespace chorus::engine
