// The page size of the systems where Chorus runs: Linux with pages of 4 KiB.
#pragma once

#include <cstdint>

namespace chorus::memory {

inline constexpr std::uint64_t page_bytes = 4096;

[[nodiscard]] constexpr std::uint64_t rounded_up(std::uint64_t size, std::uint64_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace chorus::memory
