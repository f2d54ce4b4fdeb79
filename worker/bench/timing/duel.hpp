// Two ways to do the same on one core, in turns, so that disturbances affect both alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

// Memory aligned as tensors are.
class Vector {
 public:
  explicit Vector(std::size_t bytes) : storage_(bytes + alignment) {}
  [[nodiscard]] std::byte* data() {
    auto const address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (alignment - address % alignment) % alignment;
  }

 private:
  static constexpr std::size_t alignment = 4096;
  std::vector<std::byte> storage_;
};

template <typename Pass>
double seconds_of(std::uint64_t passes, Pass const& pass) {
  auto const begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < passes; ++i) pass();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(passes);
}

struct Duel {
  double ours_s, theirs_s;  // per pass, the medians of the turns
};

// Takes about `seconds` in all; each is run at least 22 times.
template <typename Ours, typename Theirs>
Duel duel(Ours const& ours, Theirs const& theirs, double seconds) {
  constexpr std::size_t turns = 21;
  auto const once = std::max(seconds_of(1, ours), seconds_of(1, theirs));
  auto const passes = std::max<std::uint64_t>(static_cast<std::uint64_t>(seconds / (2 * turns) / once), 1);
  std::vector<double> ours_s, theirs_s;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    ours_s.push_back(seconds_of(passes, ours));
    theirs_s.push_back(seconds_of(passes, theirs));
  }
  return {median(ours_s), median(theirs_s)};
}

}  // namespace chorus::bench
