// Taking pages out of what others share.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/core/result.hpp"

namespace chorus::memory {

// Whole pages: in their place appear pages of the process's own with the same contents, all at once or not at all.
// Errors: MemoryErrc::unavailable.
[[nodiscard]] Status put_private_copy(std::span<std::byte> pages);

}  // namespace chorus::memory
