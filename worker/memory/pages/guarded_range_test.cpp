#include "worker/memory/pages/guarded_range.hpp"

#include <doctest/doctest.h>

#include <thread>

using chorus::memory::GuardedRange;

TEST_CASE("a range that is cleared and set while it is read is seen as a whole or not at all") {
  GuardedRange range;
  std::uintptr_t begin = 0, end = 0;
  CHECK_FALSE(range.read(begin, end));
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> sets{0};
  std::thread changes([&] {
    for (std::uintptr_t n = 0; !is_over; ++n) {
      auto const at = n % 2 == 0 ? 1000 : 9000;
      range.set(at, at + 100);
      ++sets;
      range.clear();
    }
  });
  // Both threads run many iterations side by side, also on one core.
  std::uint64_t seen = 0, mixed = 0;
  while (seen < 10000000 || sets < 10000000) {
    if (!range.read(begin, end)) continue;
    ++seen;
    if (end - begin != 100) ++mixed;
  }
  is_over = true;
  changes.join();
  CHECK(mixed == 0);
  CHECK_FALSE(range.read(begin, end));
  range.set(7, 8);
  CHECK(range.read(begin, end));
  CHECK(begin == 7);
  CHECK(end == 8);
}
