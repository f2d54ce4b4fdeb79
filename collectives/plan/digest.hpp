// The hash of specs, programs and channels: XXH3, 64 bits, the same on every machine for the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chorus::plan {

// Returns the digest of the bytes. `seed` is the digest of the bytes before these, or 0.
[[nodiscard]] std::uint64_t digest(void const* data, std::size_t size_bytes, std::uint64_t seed);

}  // namespace chorus::plan
