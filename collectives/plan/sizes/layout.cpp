#include "collectives/plan/sizes/layout.hpp"

#include <algorithm>
#include <numeric>

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

Layout::Layout(std::span<std::uint64_t const> counts, std::span<std::uint32_t const> by_position, std::uint32_t chunks)
    : Layout(0, static_cast<std::uint32_t>(counts.size()), chunks) {
  CHORUS_ASSERT(by_position.size() == counts.size(), "a block at every position");
  auto const blocks = counts.size();
  std::vector<std::uint64_t> begins(blocks + 1);  // by rank: in the vector
  std::partial_sum(counts.begin(), counts.end(), begins.begin() + 1);
  std::vector<std::uint64_t> before(blocks + 1);  // by position: in the order of chunks
  std::vector<Lying> lying(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    before[i + 1] = before[i] + counts[by_position[i]];
    lying[i].begin = begins[by_position[i]];
  }
  for (auto i = blocks; i-- > 0;) {
    bool const goes_on = i + 1 < blocks && lying[i].begin + counts[by_position[i]] == lying[i + 1].begin;
    lying[i].chunks_end = goes_on ? lying[i + 1].chunks_end : static_cast<std::uint32_t>(i + 1) * per_block_;
  }
  elements_ = begins.back();
  block_begins_ = std::make_shared<std::vector<std::uint64_t> const>(std::move(before));
  lying_ = std::make_shared<std::vector<Lying> const>(std::move(lying));
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

Piece Layout::piece(std::uint32_t first, std::uint32_t count) const {
  CHORUS_ASSERT(count >= 1 && first < chunks_ && count <= chunks_ - first, "a chunk range lies within the layout");
  auto const before = begin_of(first);
  if (!lying_) return {before, begin_of(first + count) - before, count};
  auto const block = first / per_block_;
  auto const& at = (*lying_)[block];
  auto const end = std::min(first + count, at.chunks_end);
  return {at.begin + (before - block_begin(block)), begin_of(end) - before, end - first};
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
