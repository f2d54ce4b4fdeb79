// Segments of runs with codes.
#pragma once

#include <cstdint>

namespace chorus::plan {

// Limit of a segment, in bytes of elements, where a program sends codes (Program::coded_from). Such a program has links
// of different speed, and the slow ones wait for the first segment of the fast ones. Larger ones gain nothing: the
// limit on slow links is their bytes.
inline constexpr std::uint64_t coded_segment_bytes_max = 64 << 10;

}  // namespace chorus::plan
