// What memory is mapped, protected and given back by, where Chorus runs: Linux with pages of 4 KiB.
#pragma once

#include <cstdint>

namespace chorus::memory {

inline constexpr std::uint64_t page_bytes = 4096;

}  // namespace chorus::memory
