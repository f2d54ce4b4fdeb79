#include "worker/memory/unit_book.hpp"

#include <utility>

namespace chorus::memory {

void UnitBook::enter(std::uint64_t offset, std::uint64_t size) {
  auto const first = first_of(offset), last = first_of(offset + size - 1);
  if (!is_whole(first, offset, size)) ++units_[first].blocks;
  if (last != first && !is_whole(last, offset, size)) ++units_[last].blocks;
  empty_.erase(empty_.lower_bound(first), empty_.upper_bound(last));
}

std::vector<UnitBook::Lacking> UnitBook::lacking(std::uint64_t offset, std::uint64_t size) {
  std::vector<Lacking> lacking;
  for (auto at = first_of(offset); at < offset + size; at += region_unit_bytes)
    if (auto const& unit = units_[at]; !unit.has_memory) lacking.push_back({at, unit.losses});
  return lacking;
}

std::uint64_t UnitBook::missing_bytes(std::uint64_t offset, std::uint64_t size) const {
  auto const first = first_of(offset), last = first_of(offset + size - 1);
  auto missing = last + region_unit_bytes - first;
  for (auto found = units_.lower_bound(first); found != units_.end() && found->first <= last; ++found)
    if (found->second.has_memory) missing -= region_unit_bytes;
  return missing;
}

void UnitBook::has_come(Lacking const& lacking) {
  auto& unit = units_[lacking.unit];
  if (unit.losses != lacking.losses || unit.has_memory) return;
  unit.has_memory = true;
  ++backed_;
}

void UnitBook::has_gone(std::uint64_t offset, std::uint64_t size) {
  for (auto found = units_.lower_bound(first_of(offset)); found != units_.end() && found->first < offset + size;
       ++found) {
    if (std::exchange(found->second.has_memory, false)) --backed_;
    ++found->second.losses;
  }
}

bool UnitBook::take_empty(std::uint64_t unit) {
  if (empty_.erase(unit) == 0) return false;
  forget(units_.find(unit));
  return true;
}

std::optional<std::uint64_t> UnitBook::take_empty_since(TimePoint since) {
  for (auto const& [unit, from] : empty_)
    if (from <= since) {
      auto const taken = unit;
      take_empty(taken);
      return taken;
    }
  return std::nullopt;
}

std::map<std::uint64_t, UnitBook::Unit>::iterator UnitBook::forget(std::map<std::uint64_t, Unit>::iterator unit) {
  if (unit->second.has_memory) --backed_;
  return units_.erase(unit);
}

}  // namespace chorus::memory
