#include "collectives/plan/layout.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::plan {

Layout::Layout(std::uint64_t elements, std::uint32_t blocks, std::uint32_t chunks)
    : elements_(elements), chunks_(chunks) {
  CHORUS_ASSERT(blocks >= 1 && chunks >= 1 && chunks % blocks == 0, "a vector is cut into blocks of as many chunks");
  quotient_ = elements / blocks;
  remainder_ = elements % blocks;
  per_block_ = chunks / blocks;
}

Layout::Layout(std::span<std::uint64_t const> counts, std::uint32_t chunks)
    : Layout(0, static_cast<std::uint32_t>(counts.size()), chunks) {
  std::vector<std::uint64_t> begins(counts.size() + 1);
  for (std::size_t block = 0; block < counts.size(); ++block) begins[block + 1] = begins[block] + counts[block];
  elements_ = begins.back();
  block_begins_ = std::make_shared<std::vector<std::uint64_t> const>(std::move(begins));
}

ElementRange Layout::range(std::uint32_t first, std::uint32_t count) const {
  CHORUS_ASSERT(first < chunks_ && count <= chunks_ - first, "a chunk range lies within the layout");
  return {begin_of(first), begin_of(first + count)};
}

std::uint64_t Layout::begin_of(std::uint32_t chunk) const {
  if (per_block_ == 1) return block_begin(chunk);
  auto const block = chunk / per_block_, part = chunk % per_block_;
  auto const begin = block_begin(block);
  if (part == 0) return begin;
  auto const size = block_begin(block + 1) - begin;
  return begin + part * (size / per_block_) + std::min<std::uint64_t>(part, size % per_block_);
}

bool Layout::is_equal() const {
  auto const size = begin_of(1);
  for (std::uint32_t chunk = 1; chunk < chunks_; ++chunk)
    if (begin_of(chunk + 1) - begin_of(chunk) != size) return false;
  return true;
}

std::uint64_t Layout::block_begin(std::uint32_t block) const {
  if (block_begins_) return (*block_begins_)[block];
  return block * quotient_ + std::min<std::uint64_t>(block, remainder_);
}

}  // namespace chorus::plan
