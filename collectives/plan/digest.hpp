// The one hash of the plans: XXH3, 64 bits, the same on every machine for the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chorus::plan {

// `seed` chains: the digest of what came before.
[[nodiscard]] std::uint64_t digest(void const* data, std::size_t size_bytes, std::uint64_t seed);

}  // namespace chorus::plan
