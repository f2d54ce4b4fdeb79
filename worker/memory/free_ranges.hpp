// The free ranges of a region.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace chorus::memory {

// Ordered by offset; adjacent ranges are merged. Not thread-safe.
class FreeRanges {
 public:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  explicit FreeRanges(Range all) { free_.emplace(all.offset, all.size); }

  // Takes the first range of that size at an aligned offset; nothing if there is none.
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  // Takes the last range of that size that ends at a multiple of the alignment; nothing if there is none.
  [[nodiscard]] std::optional<std::uint64_t> take_at_the_end(std::uint64_t size, std::uint64_t alignment);
  // Takes all free ranges within `in`.
  [[nodiscard]] std::vector<Range> take_all(Range const& in);
  void give_back(std::uint64_t offset, std::uint64_t size);

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to size
};

}  // namespace chorus::memory
