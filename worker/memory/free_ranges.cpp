#include "worker/memory/free_ranges.hpp"

#include <algorithm>
#include <iterator>

#include "worker/memory/pages/page.hpp"

namespace chorus::memory {

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t size, std::uint64_t alignment) {
  for (auto const& [offset, room] : free_) {
    auto const from = rounded_up(offset, alignment);
    auto const skipped = from - offset;
    if (skipped > room || size > room - skipped) continue;
    auto const rest = room - skipped - size;
    free_.erase(offset);
    if (skipped != 0) free_.emplace(from - skipped, skipped);
    if (rest != 0) free_.emplace(from + size, rest);
    return from;
  }
  return std::nullopt;
}

void FreeRanges::give_back(std::uint64_t offset, std::uint64_t size) {
  auto const next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    free_.erase(next);
  }
  auto const after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    auto const before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

std::vector<FreeRanges::Range> FreeRanges::take_all(Range const& in) {
  std::vector<Range> taken;
  auto const offset = in.offset, end = in.offset + in.size;
  auto room = free_.upper_bound(offset);
  if (room != free_.begin()) --room;
  while (room != free_.end() && room->first < end) {
    auto const begin = room->first, rest = room->first + room->second;
    auto const from = std::max(begin, offset), to = std::min(rest, end);
    if (from >= to) {
      ++room;
      continue;
    }
    room = free_.erase(room);
    if (begin < from) free_.emplace(begin, from - begin);
    if (to < rest) room = free_.emplace(to, rest - to).first;
    taken.push_back({from, to - from});
  }
  return taken;
}

std::optional<std::uint64_t> FreeRanges::take_at_the_end(std::uint64_t size, std::uint64_t alignment) {
  for (auto room = free_.rbegin(); room != free_.rend(); ++room) {
    auto const [offset, bytes] = *room;
    auto const end = (offset + bytes) / alignment * alignment;
    if (end < offset || end - offset < size) continue;
    auto const from = end - size;
    free_.erase(offset);
    if (from != offset) free_.emplace(offset, from - offset);
    if (end != offset + bytes) free_.emplace(end, offset + bytes - end);
    return from;
  }
  return std::nullopt;
}

}  // namespace chorus::memory
