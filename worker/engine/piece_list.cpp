#include "worker/engine/piece_list.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/engine/shared_board.hpp"

namespace chorus::engine {

PieceList::PieceList(std::vector<Step> const& steps, memory::Arena& arena) : arena_(arena) {
  auto const cut = [this](Range const& range) {
    for (auto const& piece : range.pieces)
      if (piece.buffer != plan::Buffer::scratch) cuts_.push_back(piece.at);
  };
  for (auto const& step : steps) {
    for (auto const& operand : step.operands) cut(operand.local);
    for (auto const& range : step.destinations) cut(range);
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

PieceList::~PieceList() {
  if (!published_.empty()) arena_.free(published_.data());
}

void PieceList::list(std::span<std::span<std::byte> const> pieces) {
  auto const is_same = [](std::span<std::byte> a, std::span<std::byte> b) {
    return a.data() == b.data() && a.size() == b.size();
  };
  auto const withdrawals = arena_.withdrawals();
  if (withdrawals == withdrawals_ && std::ranges::equal(pieces, pieces_, is_same)) return;
  withdrawals_ = withdrawals;
  pieces_.assign(pieces.begin(), pieces.end());
  cut();
  publish();
}

void PieceList::cut() {
  entries_.clear();
  starts_.clear();
  std::uint64_t start = 0;
  auto next = cuts_.begin();
  for (auto piece : pieces_) {
    while (!piece.empty()) {
      next = std::upper_bound(next, cuts_.end(), start);
      auto const bytes = next == cuts_.end() ? piece.size() : std::min<std::uint64_t>(piece.size(), *next - start);
      entries_.push_back(piece.first(bytes));
      starts_.push_back(start);
      piece = piece.subspan(bytes);
      start += bytes;
    }
  }
}

void PieceList::publish() {
  if (!published_.empty()) arena_.free(published_.data());
  published_ = {};
  may_be_written_ = false;
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
  may_be_written_ = std::ranges::all_of(pieces_, [this](auto piece) { return arena_.has_own_pages(piece); });
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
