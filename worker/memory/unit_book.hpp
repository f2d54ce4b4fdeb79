// Records which units of a region have memory and how many blocks share each unit. Memory is requested and returned in
// whole units, so that small blocks use huge pages too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "worker/memory/regions/shared_region.hpp"

namespace chorus::memory {

// Used under the arena's lock. A unit has an entry from the request for its memory until the memory's return. A unit
// within one block may have no entry while the block lives; then the unit has no memory yet.
class UnitBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Lacking {
    std::uint64_t unit = 0;    // its offset
    std::uint32_t losses = 0;  // for has_come()
  };

  // Adds a block to the counts of the units that it shares with others.
  void enter(std::uint64_t offset, std::uint64_t size);
  // Returns the units of a block's bytes that have no memory, or not everywhere, and makes entries for them.
  [[nodiscard]] std::vector<Lacking> lacking(std::uint64_t offset, std::uint64_t size);
  // Returns how much memory the units of these bytes lack.
  [[nodiscard]] std::uint64_t missing_bytes(std::uint64_t offset, std::uint64_t size) const;
  // Records that the unit has got memory everywhere since lacking() returned it. Without effect after has_gone().
  void has_come(Lacking const& unit);
  // Records that these bytes have lost their memory.
  void has_gone(std::uint64_t offset, std::uint64_t size);
  // Removes a block, or its part in these units. Returns the units that are no longer needed, and removes their
  // entries. Some empty units for which `may_stay` is true are kept with their memory, because getting memory is slow.
  template <class MayStay>
  [[nodiscard]] std::vector<std::uint64_t> leave(std::uint64_t offset, std::uint64_t size, MayStay const& may_stay);
  // Removes the entry of a kept empty unit. False if the unit was not kept.
  bool take_empty(std::uint64_t unit);
  // Returns a unit that has been empty since `since` or longer, and removes its entry.
  [[nodiscard]] std::optional<std::uint64_t> take_empty_since(TimePoint since);
  // Size of all units that have memory.
  [[nodiscard]] std::uint64_t backed_bytes() const { return backed_ * region_unit_bytes; }

 private:
  struct Unit {
    std::uint32_t blocks = 0;  // blocks that share the unit
    std::uint32_t losses = 0;
    bool has_memory = false;
  };
  static constexpr std::size_t empty_units_max = 16;

  static std::uint64_t first_of(std::uint64_t offset) { return offset / region_unit_bytes * region_unit_bytes; }
  static bool is_whole(std::uint64_t unit, std::uint64_t offset, std::uint64_t size) {
    return unit >= offset && unit + region_unit_bytes <= offset + size;
  }

  std::map<std::uint64_t, Unit>::iterator forget(std::map<std::uint64_t, Unit>::iterator unit);

  std::map<std::uint64_t, Unit> units_;
  std::map<std::uint64_t, TimePoint> empty_;  // kept empty units, and since when
  std::uint64_t backed_ = 0;                  // number of units that have memory
};

template <class MayStay>
std::vector<std::uint64_t> UnitBook::leave(std::uint64_t offset, std::uint64_t size, MayStay const& may_stay) {
  std::vector<std::uint64_t> left;
  for (auto found = units_.lower_bound(first_of(offset)); found != units_.end() && found->first < offset + size;) {
    auto& [at, unit] = *found;
    if (!is_whole(at, offset, size) && --unit.blocks != 0) {
      ++found;
    } else if (unit.has_memory && empty_.size() < empty_units_max && may_stay(at)) {
      empty_.emplace(at, std::chrono::steady_clock::now());
      ++found;
    } else {
      left.push_back(at);
      found = forget(found);
    }
  }
  return left;
}

}  // namespace chorus::memory
