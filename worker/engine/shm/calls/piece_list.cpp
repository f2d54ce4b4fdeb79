#include "worker/engine/shm/calls/piece_list.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/engine/shm/lanes/peer_pieces.hpp"
#include "worker/engine/shm/lanes/shared_board.hpp"

namespace chorus::engine {

std::vector<std::uint64_t> cuts_of(std::vector<Step> const& steps) {
  std::vector<std::uint64_t> cuts;
  auto const cut = [&cuts](Range const& range) {
    for (auto const& piece : range.pieces)
      if (piece.buffer != plan::Buffer::scratch) cuts.push_back(piece.at);
  };
  for (auto const& step : steps) {
    for (auto const& operand : step.operands) cut(operand.local);
    for (auto const& range : step.destinations) cut(range);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

PieceList::PieceList(std::span<std::span<std::byte> const> pieces, std::span<std::uint64_t const> cuts,
                     std::size_t element_bytes, memory::Arena& arena)
    : arena_(arena), pieces_(pieces.begin(), pieces.end()), changes_(arena.changes()) {
  cut(cuts);
  publish(element_bytes);
}

PieceList::~PieceList() {
  if (!published_.empty()) arena_.free(published_.data());
}

bool PieceList::is_of(std::span<std::span<std::byte> const> pieces) const {
  auto const is_same = [](std::span<std::byte> a, std::span<std::byte> b) {
    return a.data() == b.data() && a.size() == b.size();
  };
  return holds() && std::ranges::equal(pieces, pieces_, is_same);
}

void PieceList::cut(std::span<std::uint64_t const> cuts) {
  std::uint64_t start = 0;
  auto next = cuts.begin();
  for (auto piece : pieces_) {
    while (!piece.empty()) {
      next = std::upper_bound(next, cuts.end(), start);
      auto const bytes = next == cuts.end() ? piece.size() : std::min<std::uint64_t>(piece.size(), *next - start);
      entries_.push_back(piece.first(bytes));
      starts_.push_back(start);
      piece = piece.subspan(bytes);
      start += bytes;
    }
  }
}

void PieceList::publish(std::size_t element_bytes) {
  std::vector<PieceEntry> list;
  list.reserve(entries_.size());
  for (auto const entry : entries_) {
    auto const offset = arena_.offset_of(entry);
    if (!offset) return;
    list.push_back({*offset, entry.size()});
  }
  auto const block = arena_.allocate(list.size() * sizeof(PieceEntry));
  if (block.has_error()) return;
  published_ = *block;
  published_at_ = *arena_.offset_of(published_);
  std::memcpy(published_.data(), list.data(), published_.size());
  may_be_written_ = std::ranges::all_of(pieces_, [&](std::span<std::byte> piece) {
    return arena_.has_own_pages(piece) && is_aligned(piece.data(), element_bytes);
  });
}

std::size_t PieceList::entry_at(std::uint64_t offset) const {
  auto const after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  CHORUS_ASSERT(after != starts_.begin(), "ranges lie within the pieces");
  return static_cast<std::size_t>(after - starts_.begin()) - 1;
}

std::byte* PieceList::locate(std::uint64_t offset, std::uint64_t& bytes) const {
  auto const i = entry_at(offset);
  auto const within = offset - starts_[i];
  bytes = std::min(bytes, entries_[i].size() - within);
  return entries_[i].data() + within;
}

std::optional<std::uint64_t> PieceList::listed(std::uint64_t offset) const {
  if (published_.empty()) return std::nullopt;
  auto const i = entry_at(offset);
  if (starts_[i] != offset) return std::nullopt;
  return published_at_ + i * sizeof(PieceEntry);
}

}  // namespace chorus::engine
